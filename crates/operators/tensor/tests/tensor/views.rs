//! Views against a plain model: the list of the elements at each index.

use proptest::prelude::*;
use steptime_tensor::{Tensor, TensorError, View};

/// A change of layout, by numbers that are reduced to the range that the current view allows.
#[derive(Debug, Clone)]
enum Step {
    Slice(usize, usize, usize, usize),
    Select(usize, usize),
    Transpose(usize, usize),
    Rotate(usize),
    Broadcast(usize),
}

/// Shape and elements in order.
#[derive(Debug, Clone)]
struct Model {
    shape: Vec<usize>,
    elements: Vec<i32>,
}

impl Model {
    /// Elements of another shape, from a map of its indices to this one's.
    fn map(&self, shape: Vec<usize>, index: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let mut elements = Vec::new();
        for flat in 0..shape.iter().product() {
            let mut rest = flat;
            let mut at = vec![0; shape.len()];
            for (axis, &size) in shape.iter().enumerate().rev() {
                at[axis] = rest % size;
                rest /= size;
            }
            let own = index(&at);
            let place = own.iter().zip(&self.shape).fold(0, |place, (at, size)| place * size + at);
            elements.push(self.elements[place]);
        }
        Model { shape, elements }
    }
}

fn apply<'a>(view: View<'a, i32>, model: &Model, step: &Step) -> (View<'a, i32>, Model) {
    let rank = model.shape.len();
    let mut shape = model.shape.clone();
    match *step {
        Step::Broadcast(size) => {
            shape.insert(0, size);
            (view.broadcast(&shape).unwrap(), model.map(shape, |at| at[1..].to_vec()))
        }
        _ if rank == 0 => (view, model.clone()),
        Step::Slice(axis, start, end, step) => {
            let axis = axis % rank;
            let start = start % (shape[axis] + 1);
            let end = start + end % (shape[axis] - start + 1);
            shape[axis] = (end - start).div_ceil(step);
            let model = model.map(shape, |at| {
                let mut at = at.to_vec();
                at[axis] = start + at[axis] * step;
                at
            });
            (view.slice_step(axis, start..end, step).unwrap(), model)
        }
        Step::Select(axis, index) => {
            let axis = axis % rank;
            if shape[axis] == 0 {
                assert!(view.clone().select(axis, index).is_err());
                return (view, model.clone());
            }
            let index = index % shape.remove(axis);
            let model = model.map(shape, |at| {
                let mut at = at.to_vec();
                at.insert(axis, index);
                at
            });
            (view.select(axis, index).unwrap(), model)
        }
        Step::Transpose(first, second) => {
            let (first, second) = (first % rank, second % rank);
            shape.swap(first, second);
            let model = model.map(shape, |at| {
                let mut at = at.to_vec();
                at.swap(first, second);
                at
            });
            (view.transpose(first, second).unwrap(), model)
        }
        Step::Rotate(by) => {
            let order: Vec<usize> = (0..rank).map(|axis| (axis + by) % rank).collect();
            let shape = order.iter().map(|&axis| model.shape[axis]).collect();
            let model =
                model.map(shape, |at| (0..rank).map(|axis| at[(axis + rank - by % rank) % rank]).collect());
            (view.permute(&order).unwrap(), model)
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4usize, 0..9usize, 0..9usize, 1..4usize).prop_map(|(a, b, c, d)| Step::Slice(a, b, c, d)),
        (0..4usize, 0..9usize).prop_map(|(a, b)| Step::Select(a, b)),
        (0..4usize, 0..4usize).prop_map(|(a, b)| Step::Transpose(a, b)),
        (0..4usize).prop_map(Step::Rotate),
        (1..3usize).prop_map(Step::Broadcast),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn views_show_what_the_model_says(
        shape in prop::collection::vec(0..6usize, 0..4),
        steps in prop::collection::vec(step(), 0..6),
        cut in 0..5usize,
    ) {
        let tensor = Tensor::from_fn(&shape, |at| at as i32).unwrap();
        let mut view = tensor.view();
        let mut model = Model { shape, elements: tensor.to_vec() };
        for step in &steps {
            (view, model) = apply(view, &model, step);
            prop_assert_eq!(view.shape(), &model.shape[..]);
            prop_assert_eq!(view.to_vec(), &model.elements[..]);
            let contiguous = view.contiguous();
            prop_assert_eq!(contiguous.as_ref(), &model.elements[..]);
            prop_assert_eq!(view.as_slice().is_some(), view.is_contiguous());
            prop_assert_eq!(&view.to_tensor(), &view);
            let all = model.clone().map(model.shape.clone(), <[usize]>::to_vec);
            prop_assert_eq!(all.elements, &model.elements[..]);
        }
        // Any factorization: correct where strides allow it, refused otherwise, and always available as a copy.
        let len = view.len();
        let target = match cut { 0 => vec![len], cut if len % cut == 0 => vec![cut, len / cut], _ => vec![1, len] };
        match view.clone().reshape(&target) {
            Ok(seen) => prop_assert_eq!(seen.to_vec(), view.to_vec()),
            Err(TensorError::NotViewable { .. }) => prop_assert!(!view.is_contiguous()),
            Err(error) => prop_assert!(false, "{error}"),
        }
        let copy = view.to_tensor().reshape_or_copy(&target).unwrap();
        prop_assert_eq!(copy.to_vec(), view.to_vec());
    }

    #[test]
    fn mutable_views_write_what_they_show(
        shape in prop::collection::vec(1..6usize, 1..4),
        steps in prop::collection::vec(step(), 0..4),
    ) {
        let mut tensor = Tensor::<i32>::zeros(&shape).unwrap();
        let mut view = tensor.view_mut().unwrap();
        for step in steps {
            let rank = view.rank();
            view = match step {
                Step::Transpose(first, second) if rank > 0 => view.transpose(first % rank, second % rank).unwrap(),
                Step::Slice(axis, start, _, step) if rank > 0 => {
                    let size = view.shape()[axis % rank];
                    view.slice_step(axis % rank, start % size..size, step).unwrap()
                }
                Step::Select(axis, index) if rank > 0 => {
                    let size = view.shape()[axis % rank];
                    view.select(axis % rank, index % size).unwrap()
                }
                _ => view,
            };
        }
        let written = Tensor::from_fn(view.shape(), |at| at as i32 + 1).unwrap();
        view.copy_from(&written.view()).unwrap();
        prop_assert_eq!(view.view(), written.view());
        let len = view.len();
        prop_assert_eq!(tensor.to_vec().iter().filter(|&&value| value != 0).count(), len);
    }
}
