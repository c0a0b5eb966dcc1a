//! Fused scaled-dot-product attention: FlashAttention, memory-efficient, cuDNN.

use crate::call::{Arg, OpCall, Tensor};
use crate::child::{child, ints, transpose};
use crate::dtype::Dtype;
use crate::kernel::{Attention, AttentionKind, Kernel, Pass};
use crate::operands::{count, output, precision, read};
use crate::ops::{Lowered, OpDef};
use crate::work::{made_contiguous, work};

/// Attention.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::_flash_attention_forward"], |call| lower(call, &FLASH))
        .outputs(|call| shape(call, &FLASH)),
    OpDef::leaf(&["aten::_flash_attention_backward"], |call| lower(call, &FLASH_BACKWARD))
        .outputs(|call| shape_backward(call, &FLASH_BACKWARD)),
    OpDef::leaf(&["aten::_efficient_attention_forward"], |call| lower(call, &EFFICIENT))
        .outputs(|call| shape(call, &EFFICIENT)),
    OpDef::leaf(&["aten::_efficient_attention_backward"], |call| lower(call, &EFFICIENT_BACKWARD))
        .outputs(|call| shape_backward(call, &EFFICIENT_BACKWARD))
        .expand(before_gradients),
    OpDef::leaf(&["aten::_cudnn_attention_forward"], |call| lower(call, &CUDNN))
        .outputs(|call| shape(call, &CUDNN)),
    OpDef::leaf(&["aten::_cudnn_attention_backward"], |call| lower(call, &CUDNN_BACKWARD))
        .outputs(|call| shape_backward(call, &CUDNN_BACKWARD)),
];

/// Where the arguments stand. Queries are `[batch, queries, heads, dim]`, cuDNN's `[batch, heads, queries, dim]`.
struct Form {
    kind: AttentionKind,
    pass: Pass,
    /// The queries; keys and values follow.
    query: usize,
    /// Sums of the lengths before each sequence, where sequences are packed; the longest follows.
    packed: [usize; 2],
    longest: [usize; 2],
    dropout: usize,
    causal: usize,
    bias: Option<usize>,
    heads: i64,
}

const FLASH: Form = Form {
    kind: AttentionKind::Flash,
    pass: Pass::Forward,
    query: 0,
    packed: [3, 4],
    longest: [5, 6],
    dropout: 7,
    causal: 8,
    bias: None,
    heads: -2,
};
const FLASH_BACKWARD: Form = Form {
    pass: Pass::Backward,
    query: 1,
    packed: [6, 7],
    longest: [8, 9],
    dropout: 10,
    causal: 11,
    ..FLASH
};
const EFFICIENT: Form = Form {
    kind: AttentionKind::Efficient,
    packed: [4, 5],
    longest: [6, 7],
    dropout: 8,
    causal: 9,
    bias: Some(3),
    ..FLASH
};
const EFFICIENT_BACKWARD: Form = Form {
    pass: Pass::Backward,
    query: 1,
    packed: [6, 7],
    longest: [8, 9],
    dropout: 11,
    causal: 14,
    bias: Some(4),
    ..EFFICIENT
};
const CUDNN: Form = Form {
    kind: AttentionKind::Cudnn,
    packed: [4, 5],
    longest: [6, 7],
    dropout: 9,
    causal: 10,
    bias: Some(3),
    heads: -3,
    ..FLASH
};
const CUDNN_BACKWARD: Form = Form {
    pass: Pass::Backward,
    query: 1,
    packed: [9, 10],
    longest: [11, 12],
    dropout: 13,
    causal: 14,
    bias: Some(8),
    ..CUDNN
};

fn attention(call: &OpCall, form: &Form) -> Option<Attention> {
    let [query, key, value] = [0, 1, 2].map(|at| call.tensor(form.query + at));
    let (query, key, value) = (query?, key?, value?);
    let length = if form.heads == -2 { -3 } else { -2 };
    let packed = form.packed.map(|arg| call.tensor(arg).map(|sums| sums.numel().saturating_sub(1)));
    let longest = |at: usize| call.int(form.longest[at]).map(count).filter(|_| packed[at].is_some());
    Some(Attention {
        kind: form.kind,
        pass: form.pass,
        batch: packed[0].unwrap_or_else(|| if query.shape.len() > 3 { count(query.size(0)) } else { 1 }),
        heads: count(query.size(form.heads)),
        queries: longest(0).unwrap_or_else(|| count(query.size(length))),
        keys: longest(1).unwrap_or_else(|| count(key.size(length))),
        dim: count(query.size(-1)),
        value_dim: count(value.size(-1)),
        causal: call.flag(form.causal).unwrap_or(false),
        bias: form.bias.is_some_and(|arg| call.tensor(arg).is_some_and(|bias| bias.numel() > 0)),
        dropout: call.float(form.dropout).is_some_and(|share| share > 0.0),
        precision: precision(query.dtype, false),
    })
}

/// Two products forward, five backward; a causal mask leaves half of them.
fn flops(of: &Attention) -> u64 {
    let pairs = of.batch.saturating_mul(of.heads).saturating_mul(of.queries).saturating_mul(of.keys);
    let products = match of.pass {
        Pass::Forward => 2 * (of.dim + of.value_dim),
        Pass::Backward => 2 * (3 * of.dim + 2 * of.value_dim),
    };
    pairs.saturating_mul(products) / if of.causal { 2 } else { 1 }
}

fn shape(call: &OpCall, form: &Form) -> Option<Vec<Arg>> {
    let of = attention(call, form)?;
    let query = call.tensor(form.query)?;
    let mut sizes = query.shape.to_vec();
    if let Some(last) = sizes.last_mut() {
        *last = of.value_dim as i64;
    }
    let sums = [of.batch as i64, of.heads as i64, of.queries as i64];
    let sums = Tensor::contiguous(&sums, Dtype::F32);
    Some(vec![Arg::Tensor(Tensor::contiguous(&sizes, query.dtype)), Arg::Tensor(sums)])
}

/// Gradients of queries, keys and values.
fn shape_backward(call: &OpCall, form: &Form) -> Option<Vec<Arg>> {
    let like = |at| call.tensor(form.query + at).map(|t| Arg::Tensor(Tensor::contiguous(&t.shape, t.dtype)));
    (0..3).map(like).collect()
}

fn lower(call: &OpCall, form: &Form) -> Lowered {
    let given = if form.pass == Pass::Forward { shape(call, form) } else { shape_backward(call, form) };
    let (Some(of), Some(given), Some(query)) = (attention(call, form), given, call.tensor(form.query)) else {
        return crate::fallback::lower(call);
    };
    if query.numel() == 0 {
        return Lowered::Nothing;
    }
    // The log of sums is kept for the backward pass, where one is to come.
    let results = given.iter().enumerate().filter_map(|(ret, arg)| {
        let tensor = call.output(ret).or_else(|| arg.tensors().first());
        tensor.map(|tensor| Some(output(ret, tensor)))
    });
    let large = |arg: &usize| call.tensor(*arg).is_some_and(|tensor| tensor.dtype.is_float());
    let read = (0..call.inputs.len()).filter(large).map(|arg| read(call, arg));
    work(Kernel::Attention(of), query.dtype, read.chain(results), flops(&of))
}

/// Queries and keys of a block of the memory-efficient kernel in 32 bits.
const BLOCK: u64 = 64;
/// With so many heads of all samples the kernel does not share out the keys, where they fill no more than two blocks.
const MANY_HEADS: u64 = 256;
/// Where the result of the forward pass stands among the arguments.
const RESULT: usize = 5;

/// What the memory-efficient kernel's gradient calls before it, in 32 bits: the gradient made contiguous; its product with the
/// result, summed over a head, with the positions last; and where several blocks share a query's gradient, zeros.
fn before_gradients(call: &OpCall) -> Vec<OpCall> {
    let (Some(grad), Some(result)) = (call.tensor(0), call.tensor(RESULT)) else { return Vec::new() };
    let mut steps: Vec<OpCall> = made_contiguous(grad).into_iter().collect();
    let Some(of) = attention(call, &EFFICIENT_BACKWARD).filter(|_| grad.dtype == Dtype::F32) else {
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

    fn tensor(shape: &[i64]) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, Bf16))
    }

    #[test]
    fn a_causal_forward_pass() {
        let inputs = (0..3).map(|_| tensor(&[2, 128, 4, 64]));
        let rest = [Arg::None, Arg::None, Arg::Int(128), Arg::Int(128), Arg::Float(0.0), Arg::Bool(true)];
        let lowered = crate::registry::lower(&OpCall::new(
            "aten::_flash_attention_forward",
            inputs.chain(rest).collect(),
        ));
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
        let Some(of) = attention(&call, &FLASH) else { panic!() };
        assert_eq!((of.batch, of.queries, of.heads, of.dropout), (4, 100, 4, true));
    }
}
