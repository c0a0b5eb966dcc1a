//! Fills with one number, or with a sequence of numbers.

use crate::Dtype;
use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, dtype, like};
use crate::kernel::{Elementwise, Kernel, Layout, Role, Slot, Work};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{operand, out_arg};
use crate::ops::pointwise::{self, Rule};

/// Definitions of fills.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::fill_"], |call| pointwise::lower(call, &FILL))
        .outputs(|call| pointwise::outputs(call, &FILL)),
    OpDef::leaf(&["aten::arange"], |call| sequence(call, "arange")).expand(arange),
    OpDef::leaf(&["aten::linspace"], |call| sequence(call, "linspace")),
    OpDef::composite(&["aten::zero_"]).expand(|call| filled(call, call.tensor("self").cloned())),
    OpDef::composite(&["aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::zero", "aten::fill"])
        .expand(|call| filled(call, call.tensor("self").map(like)))
        .outputs(|call| Some(vec![Arg::Tensor(like(call.tensor("self")?))])),
    OpDef::composite(&["aten::zeros", "aten::ones"]).expand(|call| filled(call, sized(call))),
    OpDef::composite(&["aten::full"]).expand(|call| filled(call, sized(call))),
    OpDef::composite(&["aten::new_zeros", "aten::new_ones"]).expand(|call| filled(call, renewed(call))),
    OpDef::composite(&["aten::new_full"]).expand(|call| filled(call, renewed(call))),
    OpDef::composite(&["aten::scalar_tensor"]),
];

const FILL: Rule = Rule::new("fill", Work::Light, 1).writes();

/// Returns a tensor with the size and type given as arguments.
fn sized(call: &BoundCall<'_>) -> Option<Tensor> {
    Some(Tensor::contiguous(&call.ints("size")?, dtype(call.arg("dtype"))))
}

/// Returns a tensor of a given size, with the type of the first argument unless another is given.
fn renewed(call: &BoundCall<'_>) -> Option<Tensor> {
    let model = call.tensor("self")?;
    let given = call.arg("dtype").filter(|arg| **arg != Arg::None);
    Some(Tensor::contiguous(&call.ints("size")?, given.map_or(model.dtype, |arg| dtype(Some(arg)))))
}

/// Returns the op that fills a new tensor.
fn filled(call: &BoundCall<'_>, tensor: Option<Tensor>) -> Vec<OpCall> {
    let target = tensor.or_else(|| call.output(0).cloned());
    target
        .map(|tensor| child(call, "aten::fill_", vec![Arg::Tensor(tensor), Arg::Int(0)]))
        .into_iter()
        .collect()
}

/// Returns the launches of a sequence, which is written by the call that gets a tensor for it; any other call creates that tensor first. The
/// tensor may still be empty: then the result, or the bounds, determine its size.
fn sequence(call: &BoundCall<'_>, op: &'static str) -> Option<Lowering> {
    let Some((arg, given)) = out_arg(call, 0).and_then(|arg| Some((arg, call.tensor_at(arg)?))) else {
        return Some(Lowering::Children);
    };
    let output = call.output(0).cloned().or_else(|| length(call, op, given)).unwrap_or_else(|| given.clone());
    if output.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let kernel = Kernel::Elementwise(Elementwise {
        op,
        work: Work::Light,
        numel: output.numel(),
        inputs: 0,
        layout: Layout::Dense,
    });
    let target = operand(Slot::Input(arg as u16, 0), Role::Write, &output);
    Some(work(kernel, output.dtype, [Some(target)], output.numel()))
}

/// Returns the tensor that a sequence from `start` to `end` fills.
fn length(call: &BoundCall<'_>, op: &str, given: &Tensor) -> Option<Tensor> {
    let numbers: Vec<f64> = (0..call.inputs.len()).map_while(|arg| call.float_at(arg)).collect();
    let length = match (op, &numbers[..]) {
        ("linspace", &[_, _, steps]) => steps,
        ("arange", &[end]) => end.ceil(),
        ("arange", &[start, end]) => (end - start).ceil(),
        ("arange", &[start, end, step, ..]) if step != 0.0 => ((end - start) / step).ceil(),
        _ => return None,
    };
    Some(Tensor::contiguous(&[length.max(0.0) as i64], given.dtype))
}

/// Returns the call that writes a sequence, from the form that returns a new tensor. Its numbers come before type, layout, device, and
/// the flag for page-locked memory.
fn arange(call: &BoundCall<'_>) -> Vec<OpCall> {
    let numbers = call.inputs.len().saturating_sub(4);
    if call.inputs.iter().any(|arg| matches!(arg, Arg::Tensor(_))) || !(1..=3).contains(&numbers) {
        return Vec::new();
    }
    let of = |at: usize, default: i64| if at < numbers { call.inputs[at].clone() } else { Arg::Int(default) };
    let (start, end) = if numbers == 1 { (Arg::Int(0), of(0, 0)) } else { (of(0, 0), of(1, 0)) };
    let dtype = call.int_at(numbers).and_then(Dtype::from_code).unwrap_or(Dtype::I64);
    let out = Arg::Tensor(Tensor::contiguous(&[0], dtype));
    let inputs = vec![start, end, of(2, 1), out];
    vec![OpCall { outputs: call.outputs.clone(), settings: call.settings, ..OpCall::new(&call.name, inputs) }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::I64;
    use crate::OpSet;

    #[test]
    fn a_sequence_is_as_long_as_its_bounds_say() {
        let out = Arg::Tensor(Tensor::contiguous(&[0], I64));
        let call = OpCall::new("aten::arange", vec![Arg::Int(0), Arg::Int(36), Arg::Int(2), out]);
        let lowered = OpSet::standard().lower(&call);
        assert_eq!(lowered.kernel().map(|kernel| kernel.bytes_written()), Some(18 * 8));
        let first = OpCall::new("aten::arange", vec![Arg::Int(36), Arg::Int(4), Arg::None]);
        assert_eq!(OpSet::standard().lower(&first), Lowering::Children);
    }
}
