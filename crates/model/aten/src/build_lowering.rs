//! Construction of lowerings and calls.

use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, KernelCall, Operand};
use crate::op_def::Lowering;
use crate::operands;

/// Returns one kernel with these operands; nothing if it accesses no bytes.
#[must_use]
pub fn work(
    kernel: Kernel,
    dtype: Dtype,
    operands: impl IntoIterator<Item = Option<Operand>>,
    flops: u64,
) -> Lowering {
    launches(1, kernel, dtype, operands, flops)
}

/// Returns several kernels of one op; nothing if they access no bytes.
#[must_use]
pub fn launches(
    launches: u32,
    kernel: Kernel,
    dtype: Dtype,
    operands: impl IntoIterator<Item = Option<Operand>>,
    flops: u64,
) -> Lowering {
    let operands: operands::Operands = operands.into_iter().flatten().filter(|o| o.bytes > 0).collect();
    if operands.is_empty() {
        return Lowering::Nothing;
    }
    Lowering::Kernel(KernelCall { kernel, dtype, operands, flops, launches })
}

/// Returns the return of a call as written: as recorded, otherwise with the shape of a rule.
#[must_use]
pub fn result(call: &OpCall, ret: u16, shape: &[i64], dtype: Dtype) -> Operand {
    let computed = || Tensor::contiguous(shape, dtype).bytes();
    let recorded = call.output(usize::from(ret)).map(Tensor::distinct_bytes);
    operands::output_bytes(ret, recorded.unwrap_or_else(computed))
}

/// Returns one contiguous tensor as the only result of a call.
#[must_use]
pub fn one(shape: &[i64], dtype: Dtype) -> Option<Vec<Arg>> {
    Some(vec![Arg::Tensor(Tensor::contiguous(shape, dtype))])
}

/// Returns the lowering of a call that launches something, although its arguments do not determine what or how much.
#[must_use]
pub fn unknown(call: &OpCall) -> Lowering {
    let operands = operands::Operands::new();
    let dtype = operands::main_dtype(call);
    Lowering::Unknown(KernelCall { kernel: Kernel::Unknown, dtype, operands, flops: 0, launches: 1 })
}

/// Returns a call with one tensor as its result.
#[must_use]
pub fn giving(name: &str, inputs: Vec<Arg>, output: &Tensor) -> OpCall {
    OpCall { outputs: vec![Arg::Tensor(output.clone())], ..OpCall::new(name, inputs) }
}

/// Returns the call for a new tensor of zeros.
#[must_use]
pub fn zeros(shape: &[i64], dtype: Dtype) -> OpCall {
    giving("aten::zeros", vec![Arg::Ints(shape.into())], &Tensor::contiguous(shape, dtype))
}

/// Returns the call for the whole numbers from 0 on.
#[must_use]
pub fn counted(numbers: u64) -> OpCall {
    let numbers = numbers as i64;
    let inputs = vec![Arg::Int(numbers), Arg::Int(4), Arg::Int(0), Arg::None, Arg::None];
    giving("aten::arange", inputs, &Tensor::contiguous(&[numbers], Dtype::I64))
}

/// Returns the copy of a tensor that is not contiguous.
#[must_use]
pub fn made_contiguous(tensor: &Tensor) -> Option<OpCall> {
    let copy = Tensor { device: tensor.device, ..Tensor::contiguous(&tensor.shape, tensor.dtype) };
    let inputs = vec![Arg::Tensor(tensor.clone()), Arg::Int(0)];
    (!tensor.is_contiguous()).then(|| giving("aten::contiguous", inputs, &copy))
}

/// Returns the copy of one tensor into another.
#[must_use]
pub fn copied(to: &Tensor, from: &Tensor) -> OpCall {
    let inputs = vec![Arg::Tensor(to.clone()), Arg::Tensor(from.clone()), Arg::Bool(false)];
    giving("aten::copy_", inputs, to)
}
