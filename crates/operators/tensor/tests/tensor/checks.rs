//! Refused arguments and their error texts; sharing; alignment; reshapes without a copy.

use half::{bf16, f16};
use steptime_tensor::{Element, Layout, Tensor, TensorError, View, ViewMut};

fn aligned<T: Element>() {
    for len in [0, 1, 3, 64, 1000] {
        let tensor = Tensor::<T>::zeros(&[len]).unwrap();
        assert_eq!(tensor.len(), len);
        if !cfg!(miri) {
            assert_eq!(tensor.as_slice().unwrap().as_ptr().addr() % if len == 0 { 1 } else { 64 }, 0);
        }
        let tensor = Tensor::from_vec(vec![T::default(); len], &[len]).unwrap();
        assert_eq!(tensor.to_vec(), vec![T::default(); len]);
    }
}

#[test]
fn storage_is_aligned() {
    aligned::<f32>();
    aligned::<f16>();
    aligned::<bf16>();
    aligned::<i32>();
    aligned::<i64>();
    aligned::<u8>();
}

#[test]
fn layouts_outside_of_the_storage_are_refused() {
    let data = [0f32; 12];
    assert!(View::new(&data[..], &[3, 4], &[4, 1], 0).is_ok());
    assert!(View::new(&data[..], &[3, 4], &[1, 3], 0).is_ok());
    assert!(View::new(&data[..], &[0, 4], &[4, 1], 99).is_ok());
    assert!(View::new(&data[..], &[1000], &[0], 11).is_ok());
    let error = View::new(&data[..], &[3, 4], &[4, 1], 1).unwrap_err();
    assert!(error.to_string().contains("reach element 12, and the storage has 12"), "{error}");
    assert!(View::new(&data[..], &[3, 4], &[5, 1], 0).is_err());
    assert!(matches!(View::new(&data[..], &[3], &[1, 1], 0), Err(TensorError::Rank { .. })));
    assert!(matches!(View::from_slice(&data, &[5]), Err(TensorError::Length { len: 12, expected: 5, .. })));
    assert!(matches!(Tensor::from_vec(vec![0u8; 3], &[2]), Err(TensorError::Length { .. })));
}

#[test]
fn numbers_that_overflow_are_refused() {
    let large = usize::MAX;
    let refused = |layout| assert!(matches!(layout, Err(TensorError::TooLarge { .. })), "{layout:?}");
    refused(Layout::contiguous(&[large, 2]));
    refused(Layout::contiguous(&[0, large, 2]));
    refused(Layout::new(&[2, large], &[0, 0], 0));
    refused(Layout::new(&[2], &[large], 1));
    refused(Layout::new(&[3], &[large], 0));
    refused(Layout::new(&[1], &[0], 0).unwrap().broadcast(&[large, 2]));
    assert!(Tensor::<i64>::zeros(&[large / 4]).is_err());
    let one = Layout::new(&[2], &[large], 0).unwrap();
    assert_eq!(one.slice(0, 1..2, large).unwrap().last(), Some(large));
    assert_eq!(one.slice(0, 2..2, 1).unwrap().last(), None);
}

#[test]
fn bad_axes_ranges_and_orders_are_refused() {
    let tensor = Tensor::<u8>::zeros(&[2, 3]).unwrap();
    let view = || tensor.view();
    assert!(matches!(view().slice(2, 0..1), Err(TensorError::Axis { axis: 2, .. })));
    assert!(matches!(view().slice(1, 0..4), Err(TensorError::Range { end: 4, .. })));
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = view().slice(1, 2..1);
    assert!(matches!(reversed, Err(TensorError::Range { .. })));
    assert!(matches!(view().slice_step(1, 0..3, 0), Err(TensorError::Step { axis: 1 })));
    assert!(matches!(view().select(0, 2), Err(TensorError::Range { .. })));
    assert!(matches!(view().select(0, usize::MAX), Err(TensorError::Range { .. })));
    assert!(matches!(view().transpose(0, 2), Err(TensorError::Axis { .. })));
    for order in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        assert!(matches!(view().permute(order), Err(TensorError::Order { rank: 2, .. })));
    }
    assert!(matches!(view().broadcast(&[3]), Err(TensorError::Broadcast { .. })));
    assert!(matches!(view().broadcast(&[2, 2, 4]), Err(TensorError::Broadcast { .. })));
    assert!(matches!(view().reshape(&[7]), Err(TensorError::Elements { .. })));
}

#[test]
fn reshapes_copy_only_where_they_must() {
    let tensor = Tensor::from_fn(&[2, 3, 4], |at| at as f32).unwrap();
    let joined = tensor.view().reshape(&[6, 2, 2]).unwrap();
    assert_eq!(joined.strides(), [4, 2, 1]);
    // Every other block of rows: the inner two dimensions still join, all three do not.
    let apart = tensor.view().slice(1, 0..2).unwrap();
    assert_eq!(apart.clone().reshape(&[2, 8]).unwrap().strides(), [12, 1]);
    assert!(matches!(apart.reshape(&[16]), Err(TensorError::NotViewable { .. })));
    let turned = tensor.clone().transpose(0, 2).unwrap();
    assert!(turned.clone().reshape(&[24]).is_err());
    let copied = turned.clone().reshape_or_copy(&[24]).unwrap();
    assert_eq!(copied.to_vec(), turned.to_vec());
    assert!(copied.is_contiguous() && !copied.is_shared());
    assert!(turned.contiguous().is_contiguous());
    let rank0 = Tensor::from_vec(vec![5i64], &[]).unwrap();
    assert_eq!(rank0.view().reshape(&[1, 1]).unwrap().to_vec(), [5]);
    assert_eq!(rank0.broadcast(&[3]).unwrap().to_vec(), [5, 5, 5]);
}

#[test]
fn mutable_views_do_not_overlap_themselves() {
    let mut data = [0f32; 12];
    assert!(matches!(ViewMut::new(&mut data[..], &[3], &[0], 0), Err(TensorError::Overlap { .. })));
    assert!(matches!(ViewMut::new(&mut data[..], &[3, 4], &[2, 1], 0), Err(TensorError::Overlap { .. })));
    assert!(ViewMut::new(&mut data[..], &[1, 4], &[0, 1], 0).is_ok());
    assert!(ViewMut::new(&mut data[..], &[2, 3], &[1, 2], 0).is_ok());
    let one = ViewMut::from_mut_slice(&mut data[..1], &[1]).unwrap();
    assert!(matches!(one.broadcast(&[2]), Err(TensorError::Overlap { .. })));
}

#[test]
fn shared_storage_is_written_by_one_only() {
    let mut first = Tensor::from_vec(vec![1, 2, 3], &[3]).unwrap();
    let second = first.clone();
    assert_eq!(first.view_mut().unwrap_err(), TensorError::Shared);
    assert!(first.is_shared());
    first.make_mut().fill(7);
    assert_eq!((first.to_vec(), second.to_vec()), (vec![7, 7, 7], vec![1, 2, 3]));
    let mut repeated = second.broadcast(&[2, 3]).unwrap();
    assert!(repeated.view_mut().is_err());
    assert!(repeated.make_mut().set(&[1, 0], 9));
    assert!(!repeated.make_mut().set(&[2, 0], 9));
    assert_eq!(repeated.to_vec(), [1, 2, 3, 9, 2, 3]);
    assert_eq!((repeated.get(&[1, 0]), repeated.get(&[0])), (Some(9), None));
}

#[test]
fn rows_are_the_longest_runs() {
    let tensor = Tensor::from_fn(&[2, 3, 4], |at| at as i32).unwrap();
    assert_eq!(tensor.rows().map(<[i32]>::len).collect::<Vec<_>>(), [24]);
    assert_eq!(tensor.view().slice(1, 1..3).unwrap().rows().map(<[i32]>::len).collect::<Vec<_>>(), [8, 8]);
    assert_eq!(tensor.view().select(2, 0).unwrap().rows().len(), 6);
    assert_eq!(tensor.view().slice(2, 0..0).unwrap().rows().len(), 0);
    let mut view = tensor.view().to_tensor();
    let mut view = view.view_mut().unwrap();
    assert!(view.reborrow().as_mut_slice().is_some());
    assert!(view.reborrow().slice(1, 0..2).unwrap().as_mut_slice().is_none());
    let other = Tensor::<i32>::zeros(&[3]).unwrap();
    assert!(matches!(view.copy_from(&other.view()), Err(TensorError::Shapes { .. })));
}
