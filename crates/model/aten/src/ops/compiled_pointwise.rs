//! Chain of elementwise ops fused into one kernel by a compiler: every tensor is read once, and every result written once.

use crate::bound_call::BoundCall;
use crate::build_lowering::launches;
use crate::call::{Arg, Tensor};
use crate::kernel::{Elementwise, Kernel, Work};
use crate::layout::elementwise;
use crate::op_def::{Lowering, OpDef};
use crate::operands;

/// Definitions of this file.
pub static OPS: &[OpDef] = &[OpDef::leaf(&["triton_poi_fused"], lower)];

fn lower(call: &BoundCall<'_>) -> Option<Lowering> {
    let result = call.outputs.iter().flat_map(Arg::tensors).max_by_key(|tensor| tensor.numel())?;
    let inputs: Vec<&Tensor> = call.input_tensors().map(|(_, _, tensor)| tensor).collect();
    // Arithmetic between loads and stores is hidden by them, except in a chain with a single tensor.
    let (op, work) = match inputs.len() {
        0 | 1 => ("gelu", Work::Heavy),
        2 => ("mul", Work::Medium),
        _ => ("addcmul", Work::Medium),
    };
    let kernel = Elementwise {
        op,
        work,
        numel: result.numel(),
        inputs: inputs.len() as u32,
        layout: elementwise(result, &inputs),
    };
    let list = operands::inputs(call).into_iter().chain(operands::outputs(call)).map(Some);
    Some(launches(1, Kernel::Elementwise(kernel), result.dtype, list, 0))
}
