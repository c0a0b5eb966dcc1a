//! Calls that a call makes itself, and views of its tensors.

use smallvec::SmallVec;

use crate::bound_call::BoundCall;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::dtype::Dtype;

/// Returns a call made by another, with the same settings.
pub fn child(parent: &OpCall, name: &str, inputs: Vec<Arg>) -> OpCall {
    OpCall { name: name.into(), inputs, outputs: Vec::new(), settings: parent.settings }
}

/// Returns a contiguous tensor as an argument.
pub fn fresh(shape: &[i64], dtype: Dtype) -> Arg {
    Arg::Tensor(Tensor::contiguous(shape, dtype))
}

/// Returns a contiguous tensor with the shape and type of another.
pub fn like(model: &Tensor) -> Tensor {
    Tensor::contiguous(&model.shape, model.dtype)
}

/// Returns the gradient of a call's first result: dense, in the same order of dimensions.
pub fn gradient(call: &BoundCall<'_>) -> Option<Tensor> {
    let result = call.results()?.first()?.tensors().first()?.clone();
    let plain = if result.is_dense() { result } else { like(&result) };
    Some(Tensor { device: Device::Cuda, offset: 0, ..plain })
}

/// Returns a number as the tensor that PyTorch wraps it into.
pub fn wrapped(number: &Arg) -> Arg {
    let dtype = match number {
        Arg::Bool(_) => Dtype::Bool,
        Arg::Int(_) => Dtype::I64,
        Arg::Float(_) => Dtype::F64,
        other => return other.clone(),
    };
    Arg::Tensor(Tensor { device: Device::Cpu, ..Tensor::contiguous(&[], dtype) })
}

/// Returns a list of whole numbers as an argument.
pub fn ints(list: &[i64]) -> Arg {
    Arg::Ints(list.into())
}

/// Returns a view with two dimensions exchanged, counted from the end if negative; the tensor itself if they are out of range.
pub fn transpose(tensor: &Tensor, a: i64, b: i64) -> Tensor {
    let rank = tensor.shape.len();
    let at = |dim: i64| {
        usize::try_from(if dim < 0 { dim + rank as i64 } else { dim }).ok().filter(|&at| at < rank)
    };
    let mut view = tensor.clone();
    if let (Some(a), Some(b), false) = (at(a), at(b), tensor.is_sparse()) {
        view.shape.swap(a, b);
        view.strides.swap(a, b);
    }
    view
}

/// Returns a view of another shape of a contiguous tensor; any other tensor is copied first, so the result is contiguous.
pub fn reshape(tensor: &Tensor, shape: &[i64]) -> Tensor {
    let offset = if tensor.is_contiguous() { tensor.offset } else { 0 };
    Tensor { device: tensor.device, offset, ..Tensor::contiguous(shape, tensor.dtype) }
}

/// Returns a view with an added dimension of size one.
pub fn unsqueeze(tensor: &Tensor, dim: usize) -> Tensor {
    let mut view = tensor.clone();
    let dim = dim.min(tensor.shape.len());
    let stride = match (tensor.shape.get(dim), tensor.strides.get(dim)) {
        (Some(&size), Some(&stride)) => size * stride,
        _ => 1,
    };
    view.shape.insert(dim, 1);
    view.strides.insert(dim, stride);
    view
}

/// Returns a view with dimensions of size one expanded to a shape.
pub fn expand(tensor: &Tensor, shape: &[i64]) -> Tensor {
    let mut view = Tensor { shape: shape.into(), ..tensor.clone() };
    let added = shape.len().saturating_sub(tensor.shape.len());
    view.strides = (0..shape.len())
        .map(|dim| match dim.checked_sub(added) {
            Some(own) if tensor.shape[own] == shape[dim] => tensor.strides.get(own).copied().unwrap_or(1),
            _ => 0,
        })
        .collect::<SmallVec<_>>();
    view
}

/// Returns the element type of PyTorch's number for it; 32-bit float, the default, if there is none.
pub fn dtype(arg: Option<&Arg>) -> Dtype {
    match arg {
        Some(Arg::Int(0 | 1)) => Dtype::I8,
        Some(Arg::Int(2)) => Dtype::I16,
        Some(Arg::Int(3)) => Dtype::I32,
        Some(Arg::Int(4)) => Dtype::I64,
        Some(Arg::Int(5)) => Dtype::F16,
        Some(Arg::Int(7)) => Dtype::F64,
        Some(Arg::Int(9)) => Dtype::Complex64,
        Some(Arg::Int(10)) => Dtype::Complex128,
        Some(Arg::Int(11)) => Dtype::Bool,
        Some(Arg::Int(15)) => Dtype::Bf16,
        Some(Arg::Text(name)) => Dtype::parse(name).unwrap_or(Dtype::F32),
        _ => Dtype::F32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;

    #[test]
    fn views_keep_the_memory() {
        let tensor = Tensor::contiguous(&[4, 6], F32);
        assert_eq!(transpose(&tensor, 0, 1), Tensor::strided(&[6, 4], &[1, 6], F32));
        assert_eq!(transpose(&tensor, -1, -2).strides.as_slice(), [1, 6]);
        assert_eq!(unsqueeze(&tensor, 1).strides.as_slice(), [6, 6, 1]);
        assert_eq!(expand(&Tensor::contiguous(&[6], F32), &[4, 6]).strides.as_slice(), [0, 1]);
    }
}
