//! Fused scaled-dot-product attention: FlashAttention, memory-efficient, cuDNN.

use crate::bound_call::BoundCall;
use crate::build_lowering::{made_contiguous, work};
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, ints, transpose};
use crate::dtype::Dtype;
use crate::kernel::{Attention, AttentionKind, Kernel, Pass};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, output, precision, read_at};

/// Attention.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::_flash_attention_forward"], |call| lower(call, &FLASH, Pass::Forward))
        .outputs(|call| shape(call, &FLASH)),
    OpDef::leaf(&["aten::_flash_attention_backward"], |call| lower(call, &FLASH, Pass::Backward))
        .outputs(shape_backward),
    OpDef::leaf(&["aten::_efficient_attention_forward"], |call| lower(call, &EFFICIENT, Pass::Forward))
        .outputs(|call| shape(call, &EFFICIENT)),
    OpDef::leaf(&["aten::_efficient_attention_backward"], |call| lower(call, &EFFICIENT, Pass::Backward))
        .outputs(shape_backward)
        .expand(before_gradients),
    OpDef::leaf(&["aten::_cudnn_attention_forward"], |call| lower(call, &CUDNN, Pass::Forward))
        .outputs(|call| shape(call, &CUDNN)),
    OpDef::leaf(&["aten::_cudnn_attention_backward"], |call| lower(call, &CUDNN, Pass::Backward))
        .outputs(shape_backward),
];

/// Argument names of an implementation, in both passes.
struct Form {
    kind: AttentionKind,
    /// Cumulative sequence lengths if sequences are packed: of queries and of keys.
    packed: [&'static str; 2],
    /// Length of the longest sequence.
    longest: [&'static str; 2],
    causal: &'static str,
    bias: Option<&'static str>,
    /// Dimension of the heads, counted from the end: queries are `[batch, queries, heads, dim]`, cuDNN's
    /// `[batch, heads, queries, dim]`.
    heads: i64,
}

const FLASH: Form = Form {
    kind: AttentionKind::Flash,
    packed: ["cum_seq_q", "cum_seq_k"],
    longest: ["max_q", "max_k"],
    causal: "is_causal",
    bias: None,
    heads: -2,
};
const EFFICIENT: Form = Form {
    kind: AttentionKind::Efficient,
    packed: ["cu_seqlens_q", "cu_seqlens_k"],
    longest: ["max_seqlen_q", "max_seqlen_k"],
    causal: "custom_mask_type",
    bias: Some("bias"),
    heads: -2,
};
const CUDNN: Form = Form { kind: AttentionKind::Cudnn, bias: Some("attn_bias"), heads: -3, ..FLASH };

fn attention(call: &BoundCall<'_>, form: &Form, pass: Pass) -> Option<Attention> {
    let [query, key, value] = ["query", "key", "value"].map(|name| call.tensor(name));
    let (query, key, value) = (query?, key?, value?);
    let length = if form.heads == -2 { -3 } else { -2 };
    let packed = form.packed.map(|name| call.tensor(name).map(|sums| sums.numel().saturating_sub(1)));
    let longest = |at: usize| call.int(form.longest[at]).map(count).filter(|_| packed[at].is_some());
    Some(Attention {
        kind: form.kind,
        pass,
        batch: packed[0].unwrap_or_else(|| if query.shape.len() > 3 { count(query.size(0)) } else { 1 }),
        heads: count(query.size(form.heads)),
        queries: longest(0).unwrap_or_else(|| count(query.size(length))),
        keys: longest(1).unwrap_or_else(|| count(key.size(length))),
        dim: count(query.size(-1)),
        value_dim: count(value.size(-1)),
        causal: call.flag(form.causal).unwrap_or(false),
        bias: form.bias.is_some_and(|name| call.tensor(name).is_some_and(|bias| bias.numel() > 0)),
        dropout: call.float("dropout_p").is_some_and(|share| share > 0.0),
        precision: precision(query.dtype, false),
    })
}

/// Returns the operations: two products forward, five backward; a causal mask leaves half of them.
fn flops(of: &Attention) -> u64 {
    let pairs = of.batch.saturating_mul(of.heads).saturating_mul(of.queries).saturating_mul(of.keys);
    let products = match of.pass {
        Pass::Forward => 2 * (of.dim + of.value_dim),
        Pass::Backward => 2 * (3 * of.dim + 2 * of.value_dim),
    };
    pairs.saturating_mul(products) / if of.causal { 2 } else { 1 }
}

fn shape(call: &BoundCall<'_>, form: &Form) -> Option<Vec<Arg>> {
    let of = attention(call, form, Pass::Forward)?;
    let query = call.tensor("query")?;
    let mut sizes = query.shape.to_vec();
    if let Some(last) = sizes.last_mut() {
        *last = of.value_dim as i64;
    }
    let sums = [of.batch as i64, of.heads as i64, of.queries as i64];
    let sums = Tensor::contiguous(&sums, Dtype::F32);
    Some(vec![Arg::Tensor(Tensor::contiguous(&sizes, query.dtype)), Arg::Tensor(sums)])
}

/// Returns the gradients of queries, keys and values.
fn shape_backward(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let like = |name| call.tensor(name).map(|t| Arg::Tensor(Tensor::contiguous(&t.shape, t.dtype)));
    ["query", "key", "value"].into_iter().map(like).collect()
}

fn lower(call: &BoundCall<'_>, form: &Form, pass: Pass) -> Option<Lowering> {
    let given = if pass == Pass::Forward { shape(call, form)? } else { shape_backward(call)? };
    let (of, query) = (attention(call, form, pass)?, call.tensor("query")?);
    if query.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    // The log of sums is stored for the backward pass, if there is one.
    let results = given.iter().enumerate().filter_map(|(ret, arg)| {
        let tensor = call.output(ret).or_else(|| arg.tensors().first());
        tensor.map(|tensor| Some(output(ret, tensor)))
    });
    let large = |arg: &usize| call.tensor_at(*arg).is_some_and(|tensor| tensor.dtype.is_float());
    let read = (0..call.inputs.len()).filter(large).map(|arg| read_at(call, arg));
    Some(work(Kernel::Attention(of), query.dtype, read.chain(results), flops(&of)))
}

/// Number of queries and keys in a block of the memory-efficient kernel in 32 bits.
const BLOCK: u64 = 64;
/// Minimum number of heads over all samples from which the kernel does not split keys that fill at most two blocks.
const MANY_HEADS: u64 = 256;

/// Returns the calls before the gradient of the memory-efficient kernel, in 32 bits. The gradient is made contiguous,
/// multiplied by the result, and summed over a head, with the positions last. If several blocks share a query's
/// gradient, it is set to zero.
fn before_gradients(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(grad), Some(result)) = (call.tensor("grad_out_"), call.tensor("out")) else {
        return Vec::new();
    };
    let mut steps: Vec<OpCall> = made_contiguous(grad).into_iter().collect();
    let Some(of) = attention(call, &EFFICIENT, Pass::Backward).filter(|_| grad.dtype == Dtype::F32) else {
        return steps;
    };
    let dense = Tensor::contiguous(&grad.shape, grad.dtype);
    steps.push(child(call, "aten::mul", vec![Arg::Tensor(dense.clone()), Arg::Tensor(result.clone())]));
    steps.push(child(call, "aten::sum", vec![Arg::Tensor(dense), ints(&[-1]), Arg::Bool(false), Arg::None]));
    let summed = Tensor::contiguous(&grad.shape[..grad.shape.len().saturating_sub(1)], Dtype::F32);
    steps.extend(made_contiguous(&transpose(&summed, -1, -2)));
    let heads = of.batch.saturating_mul(of.heads);
    if of.keys > BLOCK && !(heads >= MANY_HEADS && of.keys <= 2 * BLOCK) {
        let padded =
            BLOCK.saturating_mul(of.dim.next_multiple_of(BLOCK)).saturating_mul(4).saturating_add(16);
        let bytes = heads.saturating_mul(of.queries.div_ceil(BLOCK)).saturating_mul(padded);
        let workspace = Tensor::contiguous(&[i64::try_from(bytes).unwrap_or(i64::MAX)], Dtype::I8);
        steps.push(child(call, "aten::zero_", vec![Arg::Tensor(workspace)]));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::{Bf16, I32};
    use crate::OpSet;

    fn tensor(shape: &[i64]) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, Bf16))
    }

    #[test]
    fn a_causal_forward_pass() {
        let inputs = (0..3).map(|_| tensor(&[2, 128, 4, 64]));
        let rest = [Arg::None, Arg::None, Arg::Int(128), Arg::Int(128), Arg::Float(0.0), Arg::Bool(true)];
        let lowered = OpSet::standard()
            .lower(&OpCall::new("aten::_flash_attention_forward", inputs.chain(rest).collect()));
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Attention(of) = kernel.kernel else { panic!("{kernel:?}") };
        assert_eq!((of.batch, of.heads, of.queries, of.keys, of.dim), (2, 4, 128, 128, 64));
        assert_eq!(kernel.flops, 2 * 4 * 128 * 128 * 4 * 64 / 2);
        assert_eq!(kernel.bytes_read(), 3 * 2 * 128 * 4 * 64 * 2);
        assert_eq!(kernel.bytes_written(), 2 * 128 * 4 * 64 * 2 + 2 * 4 * 128 * 4);
    }

    #[test]
    fn packed_sequences_tell_their_number_and_the_longest() {
        let inputs = (0..3).map(|_| tensor(&[300, 4, 64]));
        let sums = || Arg::Tensor(Tensor::contiguous(&[5], I32));
        let rest = [sums(), sums(), Arg::Int(100), Arg::Int(100), Arg::Float(0.1), Arg::Bool(false)];
        let call = OpCall::new("aten::_flash_attention_forward", inputs.chain(rest).collect());
        let ops = OpSet::standard();
        let of = attention(&ops.bind(&call).unwrap(), &FLASH, Pass::Forward).unwrap();
        assert_eq!((of.batch, of.queries, of.heads, of.dropout), (4, 100, 4, true));
    }
}
