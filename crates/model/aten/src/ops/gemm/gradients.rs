//! Gradients of matrix products.

use super::{Form, factors, product, storage};
use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, ints, transpose};

/// Returns the gradients of both factors, each a product, and the sum for the added argument. A factor stored column by
/// column gets its gradient in the same order, as the transpose of the product.
pub(super) fn backward(call: &BoundCall<'_>, form: &Form) -> Vec<OpCall> {
    let factors = factors(call, form);
    let (Some((a, b)), Some(grad)) = (factors, product(call, form)) else { return Vec::new() };
    let both = |name, a: &Tensor, b: &Tensor| {
        child(call, name, vec![Arg::Tensor(a.clone()), Arg::Tensor(b.clone())])
    };
    let turned = |tensor: &Tensor| transpose(tensor, -1, -2);
    let mut all = match (a.shape.len(), b.shape.len()) {
        (1, _) => vec![both("aten::mul", b, &grad), both("aten::mul", a, &grad)],
        (_, 1) => {
            let column = Tensor { shape: [grad.size(0), 1].as_slice().into(), ..transpose(&grad, 0, 0) };
            let column = Tensor { strides: [1, 1].as_slice().into(), ..column };
            vec![both("aten::mul", &column, b), both("aten::mv", &turned(a), &grad)]
        }
        (2, _) => vec![
            if storage(a, false).0 {
                both("aten::mm", b, &turned(&grad))
            } else {
                both("aten::mm", &grad, &turned(b))
            },
            if storage(b, true).0 {
                both("aten::mm", &turned(&grad), a)
            } else {
                both("aten::mm", &turned(a), &grad)
            },
        ],
        _ => vec![both("aten::bmm", &turned(a), &grad), both("aten::bmm", &grad, &turned(b))],
    };
    let added = form.added.and_then(|name| call.tensor(name)).filter(|added| added.shape != grad.shape);
    if let Some(added) = added {
        let skipped = grad.shape.len().saturating_sub(added.shape.len());
        let broadcast =
            |&dim: &usize| dim < skipped || added.shape[dim - skipped] == 1 && grad.shape[dim] != 1;
        let dims: Vec<i64> = (0..grad.shape.len()).filter(broadcast).map(|dim| dim as i64).collect();
        all.push(child(call, "aten::sum", vec![Arg::Tensor(grad), ints(&dims), Arg::Bool(true), Arg::None]));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dense, gemm};
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;

    #[test]
    fn gradients_of_a_layer_are_two_products_and_a_sum() {
        let weight = Arg::Tensor(Tensor::strided(&[13, 512], &[1, 13], F32));
        let call = OpCall::new("aten::addmm", vec![dense(&[512]), dense(&[64, 13]), weight]);
        let all = OpSet::standard().backward(&call);
        let names: Vec<_> = all.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["aten::mm", "aten::mm", "aten::sum"]);
        let (input, _, _, _) = gemm(&all[0]);
        assert_eq!((input.m, input.n, input.k, input.b_transposed), (64, 13, 512, false));
        let (weight, _, _, _) = gemm(&all[1]);
        assert_eq!((weight.m, weight.n, weight.k, weight.a_transposed), (512, 13, 64, true));
    }
}
