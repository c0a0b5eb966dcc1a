//! Attention as users call it: which implementation is chosen.

use crate::call::{Arg, OpCall, Tensor};
use crate::child::{child, ints, transpose};
use crate::dtype::Dtype;
use crate::ops::OpDef;

/// Attention that calls others.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::scaled_dot_product_attention"]).expand(chosen),
    OpDef::composite(&["aten::_scaled_dot_product_flash_attention"]).expand(flash).backward(flash_gradient),
    OpDef::composite(&["aten::_scaled_dot_product_efficient_attention"])
        .expand(efficient)
        .backward(efficient_gradient),
    OpDef::composite(&["aten::_scaled_dot_product_cudnn_attention"]).expand(cudnn),
    OpDef::composite(&["aten::_scaled_dot_product_flash_attention_backward"]).expand(flash_backward),
    OpDef::composite(&["aten::_scaled_dot_product_efficient_attention_backward"]).expand(efficient_backward),
    OpDef::composite(&["aten::_scaled_dot_product_cudnn_attention_backward"])
        .expand(|call| vec![child(call, "aten::_cudnn_attention_backward", call.inputs.clone())]),
    OpDef::composite(&["aten::_scaled_dot_product_attention_math", "aten::_native_multi_head_attention"]),
];

/// The largest head that FlashAttention takes.
const WIDEST: i64 = 256;

fn given(call: &OpCall, arg: usize) -> Arg {
    call.inputs.get(arg).cloned().unwrap_or_default()
}

/// Sixteen-bit types without a mask go to FlashAttention, all else to the memory-efficient kernel. Takes (query,
/// key, value, mask, dropout, causal).
fn chosen(call: &OpCall) -> Vec<OpCall> {
    let Some(query) = call.tensor(0) else { return Vec::new() };
    let half = matches!(query.dtype, Dtype::F16 | Dtype::Bf16);
    let mask = call.tensor(3).is_some();
    let tensors = [0, 1, 2].map(|arg| given(call, arg)).into_iter();
    if half && !mask && query.size(-1) <= WIDEST {
        let rest = [given(call, 4), given(call, 5), Arg::Bool(false)];
        return vec![child(call, "aten::_scaled_dot_product_flash_attention", tensors.chain(rest).collect())];
    }
    let rest = [given(call, 3), Arg::Bool(true), given(call, 4), given(call, 5)];
    vec![child(call, "aten::_scaled_dot_product_efficient_attention", tensors.chain(rest).collect())]
}

/// Heads after positions.
fn turned(call: &OpCall, arg: usize) -> Arg {
    call.tensor(arg).map_or(Arg::None, |tensor| Arg::Tensor(transpose(tensor, 1, 2)))
}

/// The length of queries or keys, `[batch, heads, length, dim]`.
fn length(call: &OpCall, arg: usize) -> Arg {
    Arg::Int(call.tensor(arg).map_or(0, |tensor| tensor.size(-2)))
}

fn flash(call: &OpCall) -> Vec<OpCall> {
    let lengths = [Arg::None, Arg::None, length(call, 0), length(call, 1)];
    let flags = [given(call, 3), given(call, 4), Arg::Bool(false)];
    let tensors = [0, 1, 2].map(|arg| turned(call, arg)).into_iter();
    vec![child(call, "aten::_flash_attention_forward", tensors.chain(lengths).chain(flags).collect())]
}

fn efficient(call: &OpCall) -> Vec<OpCall> {
    let tensors = [0, 1, 2].map(|arg| turned(call, arg)).into_iter();
    let lengths = [given(call, 3), Arg::None, Arg::None, Arg::None, Arg::None];
    let causal = Arg::Int(call.int(6).unwrap_or(0));
    let flags = [given(call, 5), causal, given(call, 4)];
    vec![child(call, "aten::_efficient_attention_forward", tensors.chain(lengths).chain(flags).collect())]
}

fn cudnn(call: &OpCall) -> Vec<OpCall> {
    let tensors = [0, 1, 2, 3].map(|arg| given(call, arg)).into_iter();
    let lengths = [Arg::None, Arg::None, length(call, 0), length(call, 1)];
    let flags = [given(call, 4), given(call, 5), given(call, 6), Arg::Bool(false)];
    vec![child(call, "aten::_cudnn_attention_forward", tensors.chain(lengths).chain(flags).collect())]
}

/// Takes (gradient, query, key, value, result, log of sums, lengths twice, longest twice, dropout, causal, ...).
fn flash_backward(call: &OpCall) -> Vec<OpCall> {
    let tensors = [0, 1, 2, 3, 4].map(|arg| turned(call, arg)).into_iter();
    let rest = call.inputs.iter().skip(5).cloned();
    vec![child(call, "aten::_flash_attention_backward", tensors.chain(rest).collect())]
}

/// Takes (gradient, query, key, value, bias, result, log of sums, seed, offset, dropout, mask, causal).
fn efficient_backward(call: &OpCall) -> Vec<OpCall> {
    let tensors = [0, 1, 2, 3].map(|arg| turned(call, arg)).into_iter();
    let asked = call.ints(10).is_some_and(|mask| mask.get(3).is_some_and(|&flag| flag != 0));
    let rest = [
        given(call, 4),
        turned(call, 5),
        Arg::None,
        Arg::None,
        length(call, 1),
        length(call, 2),
        given(call, 6),
        given(call, 9),
        given(call, 7),
        given(call, 8),
        Arg::Int(call.int(11).unwrap_or(0)),
        Arg::Bool(asked),
    ];
    vec![child(call, "aten::_efficient_attention_backward", tensors.chain(rest).collect())]
}

/// The result, with positions before heads in memory, and the log of sums.
fn results(call: &OpCall) -> Option<[Arg; 2]> {
    let (query, value) = (call.tensor(0)?, call.tensor(2)?);
    let shape = [query.size(0), query.size(2), query.size(1), value.size(-1)];
    let result = transpose(&Tensor::contiguous(&shape, query.dtype), 1, 2);
    let sums = Tensor::contiguous(&[query.size(0), query.size(1), query.size(2)], Dtype::F32);
    Some([Arg::Tensor(result), Arg::Tensor(sums)])
}

fn flash_gradient(call: &OpCall) -> Vec<OpCall> {
    let Some([result, sums]) = results(call) else { return Vec::new() };
    let tensors = [result.clone(), given(call, 0), given(call, 1), given(call, 2), result, sums].into_iter();
    let lengths = [Arg::None, Arg::None, length(call, 0), length(call, 1)];
    let rest = [given(call, 3), given(call, 4), Arg::None, Arg::None];
    let inputs = tensors.chain(lengths).chain(rest).collect();
    vec![child(call, "aten::_scaled_dot_product_flash_attention_backward", inputs)]
}

fn efficient_gradient(call: &OpCall) -> Vec<OpCall> {
    let Some([result, sums]) = results(call) else { return Vec::new() };
    let tensors =
        [result.clone(), given(call, 0), given(call, 1), given(call, 2), given(call, 3), result, sums];
    let mask = ints(&[1, 1, 1, 0]);
    let rest = [Arg::None, Arg::None, given(call, 5), mask, given(call, 6)];
    let inputs = tensors.into_iter().chain(rest).collect();
    vec![child(call, "aten::_scaled_dot_product_efficient_attention_backward", inputs)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::fresh;
    use crate::kernel::{AttentionKind, Kernel};

    fn found(dtype: Dtype, mask: Arg) -> (AttentionKind, [u64; 5], bool) {
        let tensors = (0..3).map(|_| fresh(&[2, 4, 128, 64], dtype));
        let rest = [mask, Arg::Float(0.0), Arg::Bool(true)];
        let call = OpCall::new("aten::scaled_dot_product_attention", tensors.chain(rest).collect());
        let all = crate::leaves(&call);
        let Kernel::Attention(of) = all[0].kernel.kernel else { panic!("{all:?}") };
        let back: Vec<_> = crate::backward::backward(&call).iter().flat_map(crate::leaves).collect();
        let of_attention = back.iter().find_map(|leaf| match leaf.kernel.kernel {
            Kernel::Attention(gradients) => Some(gradients),
            _ => None,
        });
        let Some(gradients) = of_attention else { panic!("{back:?}") };
        assert_eq!((gradients.kind, gradients.queries, gradients.causal), (of.kind, of.queries, of.causal));
        (of.kind, [of.batch, of.heads, of.queries, of.keys, of.dim], of.causal)
    }

    #[test]
    fn the_type_decides() {
        let sizes = [2, 4, 128, 128, 64];
        assert_eq!(found(Dtype::Bf16, Arg::None), (AttentionKind::Flash, sizes, true));
        assert_eq!(found(Dtype::F32, Arg::None), (AttentionKind::Efficient, sizes, true));
        assert_eq!(found(Dtype::F16, fresh(&[128, 128], Dtype::F16)).0, AttentionKind::Efficient);
    }
}
