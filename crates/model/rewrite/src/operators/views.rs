//! Views of tensors, and the ops that PyTorch runs for them.

use smallvec::SmallVec;
use steptime_aten::{Arg, Tensor};
use steptime_step::{NewOp, Patch, StepIr, TensorId};

use crate::new_ops::{ints, op};

/// A patch under construction, and its step.
pub(super) struct Views<'s> {
    pub step: &'s StepIr,
    pub patch: Patch,
}

impl Views<'_> {
    /// A tensor of the step or of the patch.
    pub fn value(&self, tensor: TensorId) -> Tensor {
        let known = || self.step.tensors.get(tensor).map(|tensor| tensor.value.clone());
        known()
            .or_else(|| self.patch.added(self.step, tensor).cloned())
            .unwrap_or_else(|| Tensor::contiguous(&[], steptime_aten::Dtype::F32))
    }

    /// A new contiguous tensor.
    pub fn tensor(&mut self, shape: &[i64], like: TensorId) -> TensorId {
        let like = self.value(like);
        let value = Tensor { device: like.device, ..Tensor::contiguous(shape, like.dtype) };
        self.patch.tensor(self.step, value)
    }

    fn seen(&mut self, from: TensorId, shape: &[i64], strides: &[i64], first: u64) -> TensorId {
        let value = self.value(from);
        let seen = Tensor {
            offset: value.offset.saturating_add(first),
            device: value.device,
            place: value.place,
            ..Tensor::strided(shape, strides, value.dtype)
        };
        self.patch.tensor(self.step, seen)
    }

    /// `view` of a contiguous tensor; its output is `to`, or a new tensor.
    pub fn view(&mut self, from: TensorId, shape: &[i64], to: Option<TensorId>) -> (NewOp, TensorId) {
        let to = to.unwrap_or_else(|| self.tensor(shape, from));
        (op("aten::view", vec![Arg::Tensor(from), ints(shape)], to), to)
    }

    /// `t` of a matrix.
    pub fn transposed(&mut self, from: TensorId) -> (NewOp, TensorId) {
        let value = self.value(from);
        let turn = |sizes: &[i64]| -> Vec<i64> { sizes.iter().rev().copied().collect() };
        let (shape, strides) = (turn(&value.shape), turn(&value.strides));
        let to = self.seen(from, &shape, &strides, 0);
        let strided =
            op("aten::as_strided", vec![Arg::Tensor(from), ints(&shape), ints(&strides), Arg::None], to);
        let inputs = vec![Arg::Tensor(from), Arg::Int(0), Arg::Int(1)];
        let transpose = op("aten::transpose", inputs, to).with(vec![strided]);
        (op("aten::t", vec![Arg::Tensor(from)], to).with(vec![transpose]), to)
    }

    /// `narrow` along the columns.
    pub fn narrow(&mut self, from: TensorId, first: i64, shape: &[i64]) -> (NewOp, TensorId) {
        let value = self.value(from);
        let stride = value.strides.get(1).copied().unwrap_or(1);
        let (at, length) = (first.saturating_mul(stride), shape.get(1).copied().unwrap_or(1));
        let to = self.seen(from, shape, &value.strides, u64::try_from(at).unwrap_or(0));
        let inputs = vec![Arg::Tensor(from), ints(shape), ints(&value.strides), Arg::Int(at)];
        let strided = op("aten::as_strided", inputs, to);
        let sizes = [1, first, first.saturating_add(length), 1].map(Arg::Int);
        let slice = op("aten::slice", [Arg::Tensor(from)].into_iter().chain(sizes).collect(), to);
        let sizes = [1, first, length].map(Arg::Int);
        let inputs = [Arg::Tensor(from)].into_iter().chain(sizes).collect();
        (op("aten::narrow", inputs, to).with(vec![slice.with(vec![strided])]), to)
    }

    /// `reshape`: a view where the layout allows one, else a view of a copy.
    pub fn reshape(&mut self, from: TensorId, shape: &[i64]) -> (NewOp, TensorId) {
        let value = self.value(from);
        let call = || vec![Arg::Tensor(from), ints(shape)];
        let (inside, to) = match strides(&value, shape) {
            Some(_) if value.is_contiguous() => {
                let (view, to) = self.view(from, shape, None);
                (vec![view], to)
            }
            Some(strides) => {
                let to = self.seen(from, shape, &strides, 0);
                let inputs = [call(), vec![ints(&strides)]].concat();
                (vec![op("aten::_reshape_alias", inputs, to)], to)
            }
            None => {
                let copy = self.tensor(&value.shape, from);
                let to = self.tensor(shape, from);
                let view = op("aten::_unsafe_view", vec![Arg::Tensor(copy), ints(shape)], to);
                (vec![cloned(from, copy, &value), view], to)
            }
        };
        (op("aten::reshape", call(), to).with(inside), to)
    }

    /// `contiguous`, where a tensor is not; otherwise no op.
    pub fn contiguous(&mut self, from: TensorId) -> (Option<NewOp>, TensorId) {
        let value = self.value(from);
        if value.is_contiguous() {
            return (None, from);
        }
        let to = self.tensor(&value.shape, from);
        let inputs = vec![Arg::Tensor(from), Arg::Int(0)];
        (Some(op("aten::contiguous", inputs, to).with(vec![cloned(from, to, &value)])), to)
    }
}

/// `clone` into a contiguous tensor.
fn cloned(from: TensorId, to: TensorId, value: &Tensor) -> NewOp {
    let (tensor, sizes) = (Arg::Tensor(from), ints(&value.shape));
    let empty = op("aten::empty", vec![sizes], to);
    let like = op("aten::empty_like", vec![tensor.clone()], to).with(vec![empty]);
    let copy = op("aten::copy_", vec![Arg::Tensor(to), tensor.clone(), Arg::Bool(false)], to);
    op("aten::clone", vec![tensor, Arg::Int(0)], to).with(vec![like, copy])
}

/// The strides of a view of a tensor in another shape; `None` where a copy is needed.
fn strides(value: &Tensor, shape: &[i64]) -> Option<SmallVec<[i64; 5]>> {
    let mut strides: SmallVec<[i64; 5]> = SmallVec::from_elem(0, shape.len());
    let mut dims = value.shape.iter().zip(&value.strides).rev().filter(|(size, _)| **size != 1).peekable();
    let mut at = shape.len();
    while let Some((&size, &stride)) = dims.next() {
        let (mut block, mut outer) = (size, stride.saturating_mul(size));
        while let Some(&(&size, &stride)) = dims.peek() {
            if stride != outer {
                break;
            }
            block = block.saturating_mul(size);
            outer = stride.saturating_mul(size);
            dims.next();
        }
        let mut inner = stride;
        while block > 1 {
            at = at.checked_sub(1)?;
            if block % shape[at].max(1) != 0 {
                return None;
            }
            block /= shape[at].max(1);
            strides[at] = inner;
            inner = inner.saturating_mul(shape[at]);
        }
    }
    strides[..at].iter_mut().for_each(|stride| *stride = 1);
    shape[..at].iter().all(|&size| size == 1).then_some(strides)
}

/// The same op, and those inside it, with another result.
pub(super) fn giving(mut op: NewOp, was: TensorId, result: TensorId) -> NewOp {
    op.call = op.call.map(|call| call.with(&mut |tensor| if tensor == was { result } else { tensor }));
    op.children = op.children.into_iter().map(|child| giving(child, was, result)).collect();
    op
}
