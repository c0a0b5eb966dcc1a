//! User-level attention, and the choice of its implementation.

use crate::bound_call::BoundCall;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, ints, transpose};
use crate::dtype::Dtype;
use crate::op_def::OpDef;

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

/// Largest head size that FlashAttention supports.
const WIDEST: i64 = 256;

/// Returns the implementation: FlashAttention for 16-bit types without a mask, otherwise the memory-efficient kernel. Takes (query,
/// key, value, mask, dropout, causal).
fn chosen(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(query) = call.tensor("query") else { return Vec::new() };
    let half = matches!(query.dtype, Dtype::F16 | Dtype::Bf16);
    let mask = call.tensor("attn_mask").is_some();
    let tensors = ["query", "key", "value"].map(|arg| call.arg_or_none(arg)).into_iter();
    if half && !mask && query.size(-1) <= WIDEST {
        let rest = [call.arg_or_none("dropout_p"), call.arg_or_none("is_causal"), Arg::Bool(false)];
        return vec![child(call, "aten::_scaled_dot_product_flash_attention", tensors.chain(rest).collect())];
    }
    let rest = [
        call.arg_or_none("attn_mask"),
        Arg::Bool(true),
        call.arg_or_none("dropout_p"),
        call.arg_or_none("is_causal"),
    ];
    vec![child(call, "aten::_scaled_dot_product_efficient_attention", tensors.chain(rest).collect())]
}

/// Returns a tensor with heads after positions.
fn turned(call: &BoundCall<'_>, name: &str) -> Arg {
    call.tensor(name).map_or(Arg::None, |tensor| Arg::Tensor(transpose(tensor, 1, 2)))
}

/// Returns the length of queries or keys, `[batch, heads, length, dim]`.
fn length(call: &BoundCall<'_>, name: &str) -> Arg {
    Arg::Int(call.tensor(name).map_or(0, |tensor| tensor.size(-2)))
}

fn flash(call: &BoundCall<'_>) -> Vec<OpCall> {
    let lengths = [Arg::None, Arg::None, length(call, "query"), length(call, "key")];
    let flags = [call.arg_or_none("dropout_p"), call.arg_or_none("is_causal"), Arg::Bool(false)];
    let tensors = ["query", "key", "value"].map(|arg| turned(call, arg)).into_iter();
    vec![child(call, "aten::_flash_attention_forward", tensors.chain(lengths).chain(flags).collect())]
}

fn efficient(call: &BoundCall<'_>) -> Vec<OpCall> {
    let tensors = ["query", "key", "value"].map(|arg| turned(call, arg)).into_iter();
    let lengths = [call.arg_or_none("attn_bias"), Arg::None, Arg::None, Arg::None, Arg::None];
    let causal = Arg::Int(call.int("is_causal").unwrap_or(0));
    let flags = [call.arg_or_none("dropout_p"), causal, call.arg_or_none("compute_log_sumexp")];
    vec![child(call, "aten::_efficient_attention_forward", tensors.chain(lengths).chain(flags).collect())]
}

fn cudnn(call: &BoundCall<'_>) -> Vec<OpCall> {
    let tensors = ["query", "key", "value", "attn_bias"].map(|arg| call.arg_or_none(arg)).into_iter();
    let lengths = [Arg::None, Arg::None, length(call, "query"), length(call, "key")];
    let flags = [
        call.arg_or_none("compute_log_sumexp"),
        call.arg_or_none("dropout_p"),
        call.arg_or_none("is_causal"),
        Arg::Bool(false),
    ];
    vec![child(call, "aten::_cudnn_attention_forward", tensors.chain(lengths).chain(flags).collect())]
}

/// Takes (gradient, query, key, value, result, log of sums, lengths twice, longest twice, dropout, causal, ...).
fn flash_backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let tensors = ["grad_out", "query", "key", "value", "out"].map(|arg| turned(call, arg)).into_iter();
    let rest = call.inputs.iter().skip(5).cloned();
    vec![child(call, "aten::_flash_attention_backward", tensors.chain(rest).collect())]
}

/// Takes (gradient, query, key, value, bias, result, log of sums, seed, offset, dropout, mask, causal).
fn efficient_backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let tensors = ["grad_out_", "query", "key", "value"].map(|arg| turned(call, arg)).into_iter();
    let asked = call.ints("grad_input_mask").is_some_and(|mask| mask.get(3).is_some_and(|&flag| flag != 0));
    let rest = [
        call.arg_or_none("attn_bias"),
        turned(call, "out"),
        Arg::None,
        Arg::None,
        length(call, "query"),
        length(call, "key"),
        call.arg_or_none("logsumexp"),
        call.arg_or_none("dropout_p"),
        call.arg_or_none("philox_seed"),
        call.arg_or_none("philox_offset"),
        Arg::Int(call.int("is_causal").unwrap_or(0)),
        Arg::Bool(asked),
    ];
    vec![child(call, "aten::_efficient_attention_backward", tensors.chain(rest).collect())]
}

/// Returns the result, with positions before heads in memory, and the log of sums.
fn results(call: &BoundCall<'_>) -> Option<[Arg; 2]> {
    let (query, value) = (call.tensor("query")?, call.tensor("value")?);
    let shape = [query.size(0), query.size(2), query.size(1), value.size(-1)];
    let result = transpose(&Tensor::contiguous(&shape, query.dtype), 1, 2);
    let sums = Tensor::contiguous(&[query.size(0), query.size(1), query.size(2)], Dtype::F32);
    Some([Arg::Tensor(result), Arg::Tensor(sums)])
}

fn flash_gradient(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some([result, sums]) = results(call) else { return Vec::new() };
    let tensors = [
        result.clone(),
        call.arg_or_none("query"),
        call.arg_or_none("key"),
        call.arg_or_none("value"),
        result,
        sums,
    ]
    .into_iter();
    let lengths = [Arg::None, Arg::None, length(call, "query"), length(call, "key")];
    let rest = [call.arg_or_none("dropout_p"), call.arg_or_none("is_causal"), Arg::None, Arg::None];
    let inputs = tensors.chain(lengths).chain(rest).collect();
    vec![child(call, "aten::_scaled_dot_product_flash_attention_backward", inputs)]
}

fn efficient_gradient(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some([result, sums]) = results(call) else { return Vec::new() };
    let tensors = [
        result.clone(),
        call.arg_or_none("query"),
        call.arg_or_none("key"),
        call.arg_or_none("value"),
        call.arg_or_none("attn_bias"),
        result,
        sums,
    ];
    let mask = ints(&[1, 1, 1, 0]);
    let rest = [Arg::None, Arg::None, call.arg_or_none("dropout_p"), mask, call.arg_or_none("is_causal")];
    let inputs = tensors.into_iter().chain(rest).collect();
    vec![child(call, "aten::_scaled_dot_product_efficient_attention_backward", inputs)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::child_calls::fresh;
    use crate::kernel::{AttentionKind, Kernel};

    fn found(dtype: Dtype, mask: Arg) -> (AttentionKind, [u64; 5], bool) {
        let tensors = (0..3).map(|_| fresh(&[2, 4, 128, 64], dtype));
        let rest = [mask, Arg::Float(0.0), Arg::Bool(true)];
        let call = OpCall::new("aten::scaled_dot_product_attention", tensors.chain(rest).collect());
        let all = OpSet::standard().leaves(&call);
        let Kernel::Attention(of) = all[0].kernel.kernel else { panic!("{all:?}") };
        let back: Vec<_> = OpSet::standard()
            .backward(&call)
            .iter()
            .flat_map(|call| OpSet::standard().leaves(call))
            .collect();
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
