//! Ops that autocast calls again, with their inputs cast.

use super::branch::Branch;
use crate::call::{Arg, Tensor};

/// Whether all that an op does is to cast its inputs and to call itself with these.
pub(super) fn calls_again(branch: &Branch) -> bool {
    let types = |branch: &Branch| -> Vec<_> { tensors(branch).map(|tensor| tensor.dtype).collect() };
    let own = types(branch);
    branch.children.iter().any(|child| {
        let others = || types(child);
        child.name() == branch.name() && tensors(child).count() == own.len() && others() != own
    })
}

fn tensors(branch: &Branch) -> impl Iterator<Item = &Tensor> {
    branch.call.inputs.iter().flat_map(Arg::tensors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::OpCall;
    use crate::dtype::Dtype;

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
}
