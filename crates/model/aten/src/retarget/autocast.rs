//! Ops that autocast calls again, with their inputs cast.

use super::branch::Branch;
use super::build::cast;
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;

/// Whether an op only casts its inputs and calls itself with them.
pub(super) fn calls_again(branch: &Branch) -> bool {
    let types = |branch: &Branch| -> Vec<_> { tensors(branch).map(|tensor| tensor.dtype).collect() };
    let own = types(branch);
    branch.children.iter().any(|child| {
        let others = || types(child);
        child.name() == branch.name() && tensors(child).count() == own.len() && others() != own
    })
}

/// Returns the 16-bit type to which autocast casts inputs of an op's parts; `None` if the op itself has no 32-bit inputs, or no part is cast.
pub(super) fn narrows<'c>(whole: &OpCall, mut parts: impl Iterator<Item = &'c OpCall>) -> Option<Dtype> {
    whole.inputs.iter().flat_map(Arg::tensors).find(|tensor| tensor.dtype == Dtype::F32)?;
    let narrow = |call: &OpCall| {
        let mut types = call.inputs.iter().flat_map(Arg::tensors).map(|tensor| tensor.dtype);
        types.find(|dtype| matches!(dtype, Dtype::F16 | Dtype::Bf16))
    };
    parts.find_map(narrow)
}

/// Returns the same call with its 32-bit tensors in another type.
pub(super) fn narrowed(call: &OpCall, dtype: Dtype) -> OpCall {
    let one = |tensor: &Tensor| match tensor.dtype {
        Dtype::F32 => Tensor { dtype, ..tensor.clone() },
        _ => tensor.clone(),
    };
    let each = |arg: &Arg| match arg {
        Arg::Tensor(tensor) => Arg::Tensor(one(tensor)),
        Arg::Tensors(list) => Arg::Tensors(list.iter().map(one).collect()),
        other => other.clone(),
    };
    OpCall { inputs: call.inputs.iter().map(each).collect(), ..call.clone() }
}

/// Returns the casts of a call's 32-bit tensors.
pub(super) fn casts(call: &OpCall, dtype: Dtype) -> Vec<Branch> {
    let wide = call.inputs.iter().flat_map(Arg::tensors).filter(|tensor| tensor.dtype == Dtype::F32);
    wide.map(|tensor| cast(tensor, dtype)).collect()
}

fn tensors(branch: &Branch) -> impl Iterator<Item = &Tensor> {
    branch.call.inputs.iter().flat_map(Arg::tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_with_its_inputs_cast_is_another_call() {
        let product = |dtype, children| {
            let matrix = || Arg::Tensor(Tensor::contiguous(&[4, 4], dtype));
            Branch::new(OpCall::new("aten::mm", vec![matrix(), matrix()]), children)
        };
        let inner = |dtype| vec![product(dtype, Vec::new())];
        assert!(calls_again(&product(Dtype::F32, inner(Dtype::Bf16))));
        assert!(!calls_again(&product(Dtype::F32, inner(Dtype::F32))));
        assert!(!calls_again(&product(Dtype::F32, Vec::new())));
    }

    #[test]
    fn what_parts_take_in_16_bits_is_cast_before_the_whole() {
        let of = |name, dtype| {
            let list = vec![Tensor::contiguous(&[12, 3], dtype), Tensor::contiguous(&[12], dtype)];
            OpCall::new(name, vec![Arg::Tensor(Tensor::contiguous(&[5, 2, 3], dtype)), Arg::Tensors(list)])
        };
        let whole = of("aten::lstm", Dtype::F32);
        let parts = [of("aten::transpose", Dtype::F32), of("aten::mkldnn_rnn_layer", Dtype::Bf16)];
        assert_eq!(narrows(&whole, parts.iter()), Some(Dtype::Bf16));
        assert_eq!(narrows(&whole, parts[..1].iter()), None);
        assert_eq!(narrows(&of("aten::lstm", Dtype::Bf16), parts.iter()), None);
        assert_eq!(narrowed(&whole, Dtype::Bf16), of("aten::lstm", Dtype::Bf16));
        assert_eq!(casts(&whole, Dtype::Bf16).len(), 3);
        assert!(casts(&narrowed(&whole, Dtype::Bf16), Dtype::Bf16).is_empty());
    }
}
