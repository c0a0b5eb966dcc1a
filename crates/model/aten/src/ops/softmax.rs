//! Softmax, log-softmax, and their gradients.

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, gradient};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Pass, Softmax};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, read, result};

/// Definitions of softmax.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::_softmax"], |call| lower(call, Pass::Forward, false))
        .outputs(shape)
        .backward(|call| gradient_of(call, "aten::_softmax_backward_data")),
    OpDef::leaf(&["aten::_log_softmax"], |call| lower(call, Pass::Forward, true))
        .outputs(shape)
        .backward(|call| gradient_of(call, "aten::_log_softmax_backward_data")),
    OpDef::leaf(&["aten::_softmax_backward_data"], |call| lower(call, Pass::Backward, false))
        .outputs(shape)
        .expand(weighted),
    OpDef::leaf(&["aten::_log_softmax_backward_data"], |call| lower(call, Pass::Backward, true))
        .outputs(shape),
];

/// Takes (gradient, result, dim, type).
fn gradient_of(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    let Some(grad) = gradient(call).map(Arg::Tensor) else { return Vec::new() };
    let dim = call.arg_or_none("dim");
    vec![child(call, name, vec![grad.clone(), grad, dim, Arg::None])]
}

/// Returns the product of gradient and result, which the softmax gradient needs; that of a log-softmax uses the gradient itself.
fn weighted(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(grad), Some(result)) = (call.tensor("grad_output"), call.tensor("output")) else {
        return Vec::new();
    };
    vec![child(call, "aten::mul", vec![Arg::Tensor(grad.clone()), Arg::Tensor(result.clone())])]
}

fn shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor(if call.has("self") { "self" } else { "grad_output" })?;
    Some(vec![Arg::Tensor(Tensor::contiguous(&input.shape, result_type(call, input.dtype)))])
}

/// Returns the type of the result.
fn result_type(call: &BoundCall<'_>, given: Dtype) -> Dtype {
    if to_single(call) { Dtype::F32 } else { given }
}

/// Whether the result is in single precision and the input in half precision, as with `softmax(x, dtype=torch.float32)` in a forward pass.
fn to_single(call: &BoundCall<'_>) -> bool {
    call.has("half_to_float") && call.flag("half_to_float") == Some(true)
}

/// Whether PyTorch (2.7 to 2.11) reads long rows three times: it keeps them in registers up to nine elements per thread if the type does not
/// change, and in shared memory if vector loads can read whole rows.
fn reads_again(length: u64, element: u64, single: bool) -> bool {
    const IN_A_WARP: u64 = 1024;
    const IN_REGISTERS: u64 = 9 * 1024;
    // 48 KiB minus the exchange buffer of 32 warps.
    const SHARED_BYTES: u64 = (48 << 10) - 128;
    let whole = length.is_multiple_of(16 / element.clamp(1, 16));
    let in_shared = whole && length.saturating_mul(element) < SHARED_BYTES;
    length > IN_A_WARP && (single || length > IN_REGISTERS) && !in_shared
}

/// Returns the launches. Gradients take (gradient, result, dim), the forward pass (input, dim).
fn lower(call: &BoundCall<'_>, pass: Pass, log: bool) -> Option<Lowering> {
    let (inputs, name) = if pass == Pass::Forward { (1, "self") } else { (2, "grad_output") };
    let (input, dim) = (call.tensor(name)?, call.int("dim")?);
    if input.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let rank = input.shape.len() as i64;
    let after = if dim < 0 { dim + rank } else { dim }.saturating_add(1);
    let length = count(input.size(dim)).max(1);
    let stride =
        input.shape.iter().skip(count(after) as usize).fold(1, |n: u64, &size| n.saturating_mul(count(size)));
    let again =
        pass == Pass::Forward && stride == 1 && reads_again(length, input.dtype.size(), to_single(call));
    let kernel = Kernel::Softmax(Softmax { pass, log, rows: input.numel() / length, length, stride, again });
    let (target, _) = result(call, inputs, Tensor::contiguous(&input.shape, result_type(call, input.dtype)));
    let second = if inputs == 2 { read(call, "output") } else { None };
    Some(work(kernel, input.dtype, [read(call, name), second, Some(target)], input.numel().saturating_mul(4)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;

    #[test]
    fn rows_along_a_dimension_in_the_middle() {
        let input = Arg::Tensor(Tensor::contiguous(&[4, 10, 7], F32));
        let call = OpCall::new("aten::_log_softmax", vec![input, Arg::Int(1), Arg::Bool(false)]);
        let lowered = OpSet::standard().lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let expected =
            Softmax { pass: Pass::Forward, log: true, rows: 28, length: 10, stride: 7, again: false };
        assert_eq!(kernel.kernel, Kernel::Softmax(expected));
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (1120, 1120));
    }

    #[test]
    fn gradients_read_the_result() {
        let tensor = || Arg::Tensor(Tensor::contiguous(&[8, 16], F32));
        let inputs = vec![tensor(), tensor(), Arg::Int(-1), Arg::Int(6)];
        let call = OpCall::new("aten::_softmax_backward_data", inputs.clone());
        let lowered = OpSet::standard().lower(&call);
        assert_eq!(
            lowered.kernel().map(|kernel| (kernel.bytes_read(), kernel.bytes_written())),
            Some((1024, 512))
        );
        let children = |name| OpSet::standard().expand(&OpCall::new(name, inputs.clone()));
        assert_eq!(children("aten::_softmax_backward_data")[0].name, "aten::mul");
        assert!(children("aten::_log_softmax_backward_data").is_empty());
    }
}
