//! Linear layers and products of any rank, which call matrix products.

use crate::bound_call::BoundCall;
use crate::build_lowering::made_contiguous;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, expand as broadcast, fresh, reshape, transpose, unsqueeze};
use crate::op_def::OpDef;

/// Definitions of linear layers and products of any rank.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::linear"]).expand(linear).outputs(linear_shape),
    OpDef::composite(&["aten::matmul"]).expand(matmul).outputs(matmul_shape),
    OpDef::composite(&["aten::mv"]).expand(mv).outputs(|call| {
        let matrix = call.tensor("self")?;
        Some(vec![fresh(&[matrix.size(0)], matrix.dtype)])
    }),
    OpDef::composite(&["aten::outer", "aten::ger"]).expand(outer),
];

/// Returns the shape of the result: the input's leading dimensions, and the weight's rows.
fn linear_shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (input, weight) = (call.tensor("input")?, call.tensor("weight")?);
    let mut shape = input.shape.to_vec();
    *shape.last_mut()? = weight.size(0);
    if weight.shape.len() == 1 {
        shape.pop();
    }
    Some(vec![fresh(&shape, input.dtype)])
}

/// Returns a tensor as rows of its last dimension.
fn rows(tensor: &Tensor) -> Tensor {
    let width = tensor.size(-1);
    let height: i64 = tensor.shape.iter().rev().skip(1).product();
    if tensor.shape.len() == 2 { tensor.clone() } else { reshape(tensor, &[height, width]) }
}

fn linear(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(input), Some(weight)) = (call.tensor("input"), call.tensor("weight")) else {
        return Vec::new();
    };
    let turned = Arg::Tensor(transpose(weight, 0, 1));
    let product = |turned| child(call, "aten::matmul", vec![Arg::Tensor(input.clone()), turned]);
    match call.arg("bias") {
        Some(bias @ Arg::Tensor(_)) if input.shape.len() == 2 || input.is_contiguous() => {
            let inputs = vec![bias.clone(), Arg::Tensor(rows(input)), turned, Arg::Int(1), Arg::Int(1)];
            vec![child(call, "aten::addmm", inputs)]
        }
        Some(bias @ Arg::Tensor(_)) => {
            let result = linear_shape(call).unwrap_or_default();
            let inputs = result.into_iter().chain([bias.clone(), Arg::Int(1)]).collect();
            vec![product(turned), child(call, "aten::add_", inputs)]
        }
        _ => vec![product(turned)],
    }
}

/// Returns a tensor as rows of its last dimension, and the copy that this needs if the other dimensions are not adjacent.
fn folded(tensor: &Tensor) -> (Option<OpCall>, Tensor) {
    let last = tensor.shape.len().saturating_sub(1);
    let together = (1..last).all(|dim| {
        tensor.shape[dim - 1] == 1 || tensor.strides[dim - 1] == tensor.strides[dim] * tensor.shape[dim]
    });
    if last < 2 || together {
        let flat = rows(tensor);
        let strides = match tensor.strides[..] {
            [.., rows, columns] => [rows, columns],
            _ => return (None, flat),
        };
        return (None, Tensor { strides: strides.as_slice().into(), ..flat });
    }
    (made_contiguous(tensor), rows(tensor))
}

/// Returns the batch dimensions of both factors, broadcast.
fn batches(a: &Tensor, b: &Tensor) -> Vec<i64> {
    let leading = |tensor: &Tensor| tensor.shape[..tensor.shape.len().saturating_sub(2)].to_vec();
    let (mut long, mut short) = (leading(a), leading(b));
    if long.len() < short.len() {
        std::mem::swap(&mut long, &mut short);
    }
    let skipped = long.len() - short.len();
    for (own, other) in long[skipped..].iter_mut().zip(short) {
        *own = if *own == 1 { other } else { *own };
    }
    long
}

fn matmul_shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (a, b) = (call.tensor("self")?, call.tensor("other")?);
    let mut shape = batches(a, b);
    if a.shape.len() > 1 {
        shape.push(a.size(-2));
    }
    if b.shape.len() > 1 {
        shape.push(b.size(-1));
    }
    Some(vec![fresh(&shape, a.dtype)])
}

/// Returns the product, chosen by the ranks: a stack of matrices times one matrix is one tall product.
fn matmul(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(a), Some(b)) = (call.tensor("self"), call.tensor("other")) else { return Vec::new() };
    let both = |name, a: Tensor, b: Tensor| vec![child(call, name, vec![Arg::Tensor(a), Arg::Tensor(b)])];
    match (a.shape.len(), b.shape.len()) {
        (1, 1) => both("aten::dot", a.clone(), b.clone()),
        (1, 2) => both("aten::mm", unsqueeze(a, 0), b.clone()),
        (2, 1) => both("aten::mv", a.clone(), b.clone()),
        (2, 2) => both("aten::mm", a.clone(), b.clone()),
        (_, 1) => both("aten::mv", rows(a), b.clone()),
        (_, 2) => {
            let (copy, a) = folded(a);
            copy.into_iter().chain(both("aten::mm", a, b.clone())).collect()
        }
        _ => {
            let lead = batches(a, b);
            let stack = |tensor: &Tensor| {
                let full: Vec<i64> = lead.iter().copied().chain([tensor.size(-2), tensor.size(-1)]).collect();
                let count: i64 = lead.iter().product();
                let flat = [count, tensor.size(-2), tensor.size(-1)];
                flatten(
                    &if tensor.shape[..] == full[..] { tensor.clone() } else { broadcast(tensor, &full) },
                    flat,
                )
            };
            let a = if a.shape.len() == 1 { unsqueeze(a, 0) } else { a.clone() };
            both("aten::bmm", stack(&a), stack(b))
        }
    }
}

/// Returns a tensor with its leading dimensions merged. If they are not adjacent, it is copied.
fn flatten(tensor: &Tensor, shape: [i64; 3]) -> Tensor {
    let rank = tensor.shape.len();
    let lead = rank.saturating_sub(2);
    let together = (1..lead).all(|dim| tensor.strides[dim - 1] == tensor.strides[dim] * tensor.shape[dim]);
    if lead == 0 || !together {
        return reshape(tensor, &shape);
    }
    let strides = [tensor.strides[lead - 1], tensor.strides[rank - 2], tensor.strides[rank - 1]];
    Tensor { shape: shape.as_slice().into(), strides: strides.as_slice().into(), ..tensor.clone() }
}

/// Returns the call of a matrix-vector product, whose result is allocated and not read.
fn mv(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some((matrix, vector)) = call.tensor("self").zip(call.tensor("vec")) else { return Vec::new() };
    let result = fresh(&[matrix.size(0)], matrix.dtype);
    let factors = [Arg::Tensor(matrix.clone()), Arg::Tensor(vector.clone())];
    let inputs = std::iter::once(result).chain(factors).chain([Arg::Int(0), Arg::Int(1)]);
    vec![child(call, "aten::addmv_", inputs.collect())]
}

fn outer(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some((a, b)) = call.tensor("self").zip(call.tensor("vec2")) else { return Vec::new() };
    let column = Arg::Tensor(unsqueeze(a, 1));
    vec![child(call, "aten::mul", vec![column, Arg::Tensor(b.clone())])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;

    fn names(call: &OpCall) -> Vec<(String, Vec<Vec<i64>>)> {
        let shapes =
            |call: &OpCall| call.input_tensors().map(|(_, _, tensor)| tensor.shape.to_vec()).collect();
        OpSet::standard().expand(call).iter().map(|child| (child.name.clone(), shapes(child))).collect()
    }

    #[test]
    fn a_layer_with_a_bias_is_one_product() {
        let inputs = vec![fresh(&[8, 4, 16], F32), fresh(&[32, 16], F32), fresh(&[32], F32)];
        let call = OpCall::new("aten::linear", inputs);
        assert_eq!(names(&call), [("aten::addmm".into(), vec![vec![32], vec![32, 16], vec![16, 32]])]);
        let outputs = OpSet::standard().outputs(&call);
        assert_eq!(outputs.map(|all| all[0].tensors()[0].shape.to_vec()), Some(vec![8, 4, 32]));
    }

    #[test]
    fn ranks_decide_the_product() {
        let call = |a: &[i64], b: &[i64]| OpCall::new("aten::matmul", vec![fresh(a, F32), fresh(b, F32)]);
        let name = |a: &[i64], b: &[i64]| names(&call(a, b)).remove(0);
        assert_eq!(name(&[5], &[5]).0, "aten::dot");
        assert_eq!(name(&[4, 5], &[5]).0, "aten::mv");
        assert_eq!(name(&[2, 4, 5], &[5, 6]), ("aten::mm".into(), vec![vec![8, 5], vec![5, 6]]));
        assert_eq!(name(&[2, 3, 4, 5], &[3, 5, 6]), ("aten::bmm".into(), vec![vec![6, 4, 5], vec![6, 5, 6]]));
    }
}
