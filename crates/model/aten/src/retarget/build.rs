//! Small trees of ops, as called by CUDA's implementations.

use super::branch::Branch;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::dtype::Dtype;

/// Returns an op that launches nothing, for which only the name matters.
pub(super) fn light(name: &str) -> Branch {
    around(name, Vec::new())
}

/// Returns such an op with ops inside.
pub(super) fn around(name: &str, children: Vec<Branch>) -> Branch {
    Branch::new(OpCall::new(&format!("aten::{name}"), Vec::new()), children)
}

/// Returns a view such as `expand` or `slice`, made by `as_strided`.
pub(super) fn view(name: &str) -> Branch {
    around(name, vec![light("as_strided")])
}

/// Returns `empty_like` of a dense tensor.
pub(super) fn empty_like() -> Branch {
    around("empty_like", vec![light("empty")])
}

/// Returns an op with arguments and one result.
pub(super) fn op(name: &str, inputs: Vec<Arg>, output: Option<Tensor>) -> Branch {
    let outputs = output.map(Arg::Tensor).into_iter().collect();
    Branch::new(OpCall { outputs, ..OpCall::new(&format!("aten::{name}"), inputs) }, Vec::new())
}

/// Returns a dense copy of a tensor with `strides`.
pub(super) fn dense(source: &Tensor, strides: &[i64]) -> Branch {
    let target = Tensor::strided(&source.shape, strides, source.dtype);
    let inputs = vec![Arg::Tensor(target.clone()), Arg::Tensor(source.clone()), Arg::Bool(false)];
    around("clone", vec![empty_like(), op("copy_", inputs, Some(target))])
}

/// Returns a row-major copy of a tensor.
pub(super) fn row_major(source: &Tensor) -> Branch {
    dense(source, &[])
}

/// Returns the op that `zero_` calls on the GPU.
pub(super) fn fill(tensor: &Tensor) -> Branch {
    op("fill_", vec![Arg::Tensor(tensor.clone()), Arg::Int(0)], Some(tensor.clone()))
}

/// Returns an op with a number, which calls itself with that number in a tensor.
pub(super) fn overload(call: OpCall) -> Branch {
    let mut inner = call.clone();
    if let (Some(dtype), Some(number)) = (call.tensor_at(0).map(|t| t.dtype), inner.inputs.get_mut(1)) {
        let tensor = Tensor { device: Device::Cpu, ..Tensor::contiguous(&[], dtype) };
        *number = Arg::Tensor(tensor);
    }
    Branch::new(call, vec![Branch::new(inner, Vec::new())])
}

/// Returns an `arange`, which allocates its result and calls its overload that fills it.
pub(super) fn arange(call: OpCall) -> Branch {
    let numbers = vec![Arg::Int(0), call.inputs.first().cloned().unwrap_or_default(), Arg::Int(1)];
    let result = call.outputs.first().cloned().unwrap_or_default();
    let inputs = numbers.into_iter().chain([result]).collect();
    let inner = OpCall { outputs: call.outputs.clone(), ..OpCall::new(&call.name, inputs) };
    let children = vec![light("empty"), Branch::new(inner, vec![light("resize_")])];
    Branch::new(call, children)
}

/// Returns the numbers below `count`.
pub(super) fn range(count: i64, dtype: Dtype) -> Branch {
    let outputs = vec![Arg::Tensor(Tensor::contiguous(&[count], dtype))];
    arange(OpCall { outputs, ..OpCall::new("aten::arange", vec![Arg::Int(count)]) })
}

/// Returns a copy of a tensor in host memory to the device.
pub(super) fn to_device(source: Tensor, non_blocking: bool) -> Branch {
    let target = Tensor { device: Device::Cuda, offset: 0, ..source.clone() };
    to(source, target, non_blocking)
}

/// Returns a copy of a tensor in another type.
pub(super) fn cast(source: &Tensor, dtype: Dtype) -> Branch {
    to(source.clone(), Tensor { dtype, offset: 0, ..source.clone() }, false)
}

fn to(source: Tensor, target: Tensor, non_blocking: bool) -> Branch {
    let inputs = vec![Arg::Tensor(target.clone()), Arg::Tensor(source.clone()), Arg::Bool(non_blocking)];
    let copy = op("copy_", inputs, Some(target.clone()));
    let mut inner = op("_to_copy", vec![Arg::Tensor(source.clone())], Some(target.clone()));
    inner.children = vec![light("empty_strided"), copy];
    let mut outer = op("to", vec![Arg::Tensor(source)], Some(target));
    outer.children = vec![inner];
    outer
}
