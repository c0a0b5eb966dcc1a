//! Operands of kernels, from the arguments of a call.

use smallvec::SmallVec;

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Operand, Precision, Role, Slot};

/// List of operands.
pub type Operands = SmallVec<[Operand; 4]>;

/// Returns the tensor of an argument as read. `None` if there is none.
#[must_use]
pub fn read(call: &BoundCall<'_>, name: &str) -> Option<Operand> {
    read_at(call, call.position(name)?)
}

/// Returns the tensor of an argument as written.
#[must_use]
pub fn write(call: &BoundCall<'_>, name: &str) -> Option<Operand> {
    read(call, name).map(|operand| Operand { role: Role::Write, ..operand })
}

/// Returns the tensor of an argument as read and written.
#[must_use]
pub fn update(call: &BoundCall<'_>, name: &str) -> Option<Operand> {
    read(call, name).map(|operand| Operand { role: Role::Update, ..operand })
}

/// Returns the tensor at a position among the arguments as read.
#[must_use]
pub fn read_at(call: &OpCall, at: usize) -> Option<Operand> {
    call.tensor_at(at).map(|tensor| operand(Slot::Input(at as u16, 0), Role::Read, tensor))
}

/// Returns a return as written.
#[must_use]
pub fn output(ret: usize, tensor: &Tensor) -> Operand {
    operand(Slot::Output(ret as u16, 0), Role::Write, tensor)
}

/// Returns a written return of which only the size is known.
#[must_use]
pub const fn output_bytes(ret: u16, bytes: u64) -> Operand {
    Operand { slot: Slot::Output(ret, 0), role: Role::Write, bytes }
}

/// Returns a tensor of a slot as an operand.
#[must_use]
pub fn operand(slot: Slot, role: Role, tensor: &Tensor) -> Operand {
    Operand { slot, role, bytes: tensor.distinct_bytes() }
}

/// Returns scratch memory of the kernel, written and read again.
#[must_use]
pub const fn scratch(bytes: u64) -> Operand {
    Operand { slot: Slot::Scratch, role: Role::Update, bytes }
}

/// Returns every input tensor as read.
#[must_use]
pub fn inputs(call: &OpCall) -> Operands {
    let all = call.input_tensors();
    all.map(|(arg, at, tensor)| operand(Slot::Input(arg as u16, at as u16), Role::Read, tensor)).collect()
}

/// Returns every recorded output tensor as written.
#[must_use]
pub fn outputs(call: &OpCall) -> Operands {
    let all = call.outputs.iter().enumerate();
    all.flat_map(|(ret, arg)| arg.tensors().iter().enumerate().map(move |(at, tensor)| (ret, at, tensor)))
        .map(|(ret, at, tensor)| operand(Slot::Output(ret as u16, at as u16), Role::Write, tensor))
        .collect()
}

/// Returns the type of the first tensor with dimensions; `F32` if there are no tensors.
#[must_use]
pub fn main_dtype(call: &OpCall) -> Dtype {
    let tensors = || call.inputs.iter().chain(&call.outputs).flat_map(Arg::tensors);
    let first = tensors().find(|tensor| !tensor.shape.is_empty()).or_else(|| tensors().next());
    first.map_or(Dtype::F32, |tensor| tensor.dtype)
}

/// Whether a call writes its first argument: its name ends in `_`.
#[must_use]
pub fn in_place(call: &OpCall) -> bool {
    call.name.ends_with('_') && !call.name.ends_with("__")
}

/// Returns the argument that a call with `out` writes: a tensor after the `arity` arguments that hold inputs.
#[must_use]
pub fn out_arg(call: &OpCall, arity: usize) -> Option<usize> {
    (arity..call.inputs.len()).rev().find(|&arg| matches!(call.inputs[arg], Arg::Tensor(_)))
}

/// Returns the destination of a call's first result, and its shape: the written argument, otherwise the return, as recorded or as
/// `computed`. An in-place call updates its first argument.
#[must_use]
pub fn result(call: &OpCall, arity: usize, computed: Tensor) -> (Operand, Tensor) {
    if in_place(call)
        && let (Some(operand), Some(tensor)) = (read_at(call, 0), call.tensor_at(0))
    {
        return (Operand { role: Role::Update, ..operand }, tensor.clone());
    }
    if let Some(arg) = out_arg(call, arity) {
        let tensor = call.output(0).unwrap_or(&computed);
        return (operand(Slot::Input(arg as u16, 0), Role::Write, tensor), tensor.clone());
    }
    let tensor = call.output(0).cloned().unwrap_or(computed);
    (output(0, &tensor), tensor)
}

/// Returns the precision of multiplications of a type.
#[must_use]
pub const fn precision(dtype: Dtype, tf32: bool) -> Precision {
    match dtype {
        Dtype::F64 | Dtype::Complex128 => Precision::F64,
        Dtype::F32 if tf32 => Precision::Tf32,
        Dtype::F16 => Precision::F16,
        Dtype::Bf16 => Precision::Bf16,
        Dtype::F8 => Precision::F8,
        Dtype::I8 => Precision::I8,
        _ => Precision::F32,
    }
}

/// Converts a size to a count; a negative size becomes zero.
#[must_use]
pub fn count(size: i64) -> u64 {
    u64::try_from(size).unwrap_or(0)
}
