//! Layer, group and RMS norm.

use crate::bound_call::BoundCall;
use crate::build_lowering::{made_contiguous, work};
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, gradient, ints};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Norm, NormKind, Operand, Pass};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, output_bytes, read};

/// Definitions of norms along rows.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::native_layer_norm"], |call| forward(call, &LAYER))
        .outputs(|call| shape(call, &LAYER))
        .expand(|call| call.tensor("input").and_then(made_contiguous).into_iter().collect())
        .backward(|call| gradients(call, &LAYER, "aten::native_layer_norm_backward")),
    OpDef::leaf(&["aten::native_group_norm"], |call| forward(call, &GROUP))
        .outputs(|call| shape(call, &GROUP))
        .backward(|call| gradients(call, &GROUP, "aten::native_group_norm_backward")),
    OpDef::leaf(&["aten::_fused_rms_norm"], |call| forward(call, &RMS))
        .outputs(|call| shape(call, &RMS))
        .backward(|call| gradients(call, &RMS, "aten::_fused_rms_norm_backward")),
    OpDef::leaf(&["aten::native_layer_norm_backward"], |call| backward(call, &LAYER))
        .outputs(|call| shape_backward(call, &LAYER))
        .expand(around_backward),
    OpDef::leaf(&["aten::native_group_norm_backward"], |call| backward(call, &GROUP))
        .outputs(|call| shape_backward(call, &GROUP)),
    OpDef::leaf(&["aten::_fused_rms_norm_backward"], |call| backward(call, &RMS))
        .outputs(|call| shape_backward(call, &RMS)),
];

/// Differences between the kinds; arguments have the same names in both passes.
struct Form {
    kind: NormKind,
    /// Name of the normalized shape, or of the number of groups.
    extent: &'static str,
    /// Whether there is a bias.
    biased: bool,
    /// Statistics that the forward pass returns and the backward pass takes.
    statistics: &'static [&'static str],
}

const LAYER: Form =
    Form { kind: NormKind::Layer, extent: "normalized_shape", biased: true, statistics: &["mean", "rstd"] };
const GROUP: Form =
    Form { kind: NormKind::Group, extent: "group", biased: true, statistics: &["mean", "rstd"] };
const RMS: Form =
    Form { kind: NormKind::Rms, extent: "normalized_shape", biased: false, statistics: &["rstd"] };

/// Returns the rows of an input, and the elements per row.
fn rows(call: &BoundCall<'_>, form: &Form, input: &Tensor) -> Option<(u64, u64)> {
    if form.kind == NormKind::Group {
        let rows = count(input.size(0)).saturating_mul(count(call.int(form.extent)?));
        return Some((rows, input.numel() / rows.max(1)));
    }
    let length = call.ints(form.extent)?.iter().fold(1, |n: u64, &size| n.saturating_mul(count(size))).max(1);
    Some((input.numel() / length, length))
}

fn kernel(call: &BoundCall<'_>, form: &Form, input: &Tensor, pass: Pass) -> Option<(Kernel, u64)> {
    let (rows, length) = rows(call, form, input)?;
    let affine = call.tensor("weight").is_some();
    let channels = match form.kind {
        NormKind::Group => count(call.int("C").unwrap_or(1)) / count(call.int("group").unwrap_or(1)).max(1),
        NormKind::Layer | NormKind::Rms => 1,
    };
    Some((Kernel::Norm(Norm { kind: form.kind, pass, rows, length, channels, affine }), rows))
}

fn shape(call: &BoundCall<'_>, form: &Form) -> Option<Vec<Arg>> {
    let input = call.tensor("input")?;
    let (rows, _) = rows(call, form, input)?;
    let mut sizes: Vec<i64> = if form.kind == NormKind::Group {
        vec![input.size(0), rows as i64 / input.size(0).max(1)]
    } else {
        let kept = input.shape.len().saturating_sub(call.ints(form.extent)?.len());
        input.shape.iter().enumerate().map(|(dim, &size)| if dim < kept { size } else { 1 }).collect()
    };
    sizes.shrink_to_fit();
    let statistics = Tensor::contiguous(&sizes, Dtype::F32);
    let mut all = vec![Arg::Tensor(Tensor::contiguous(&input.shape, input.dtype))];
    all.extend(form.statistics.iter().map(|_| Arg::Tensor(statistics.clone())));
    Some(all)
}

fn forward(call: &BoundCall<'_>, form: &Form) -> Option<Lowering> {
    let input = call.tensor("input")?;
    let (kernel, rows) = kernel(call, form, input, Pass::Forward)?;
    if input.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let statistics =
        (1..).zip(form.statistics).map(|(ret, _)| Some(output_bytes(ret, rows * Dtype::F32.size())));
    let bias = if form.biased { read(call, "bias") } else { None };
    let operands = [read(call, "input"), read(call, "weight"), bias, Some(output_bytes(0, input.bytes()))];
    Some(work(kernel, input.dtype, operands.into_iter().chain(statistics), input.numel().saturating_mul(8)))
}

/// Takes (gradient, input, extent, statistics, weight, ...), a group norm its statistics before its sizes.
fn gradients(call: &BoundCall<'_>, form: &Form, name: &str) -> Vec<OpCall> {
    let (Some(grad), Some(all)) = (gradient(call), call.results()) else { return Vec::new() };
    let statistics = all.into_iter().skip(1).take(form.statistics.len());
    let first = [Arg::Tensor(grad), call.arg_or_none("input")].into_iter();
    let mask = if form.biased { ints(&[1, 1, 1]) } else { ints(&[1, 1]) };
    let weight = call.arg_or_none("weight");
    let inputs: Vec<Arg> = match form.kind {
        NormKind::Group => first
            .chain(statistics)
            .chain([weight])
            .chain(["N", "C", "HxW", "group"].map(|name| call.arg_or_none(name)))
            .chain([mask])
            .collect(),
        _ => {
            let bias = form.biased.then(|| call.arg_or_none("bias"));
            first
                .chain([call.arg_or_none("normalized_shape")])
                .chain(statistics)
                .chain([weight])
                .chain(bias)
                .chain([mask])
                .collect()
        }
    };
    vec![child(call, name, inputs)]
}

fn is_requested(call: &BoundCall<'_>, ret: usize) -> bool {
    call.ints("output_mask").and_then(|mask| mask.get(ret).copied()).is_none_or(|flag| flag != 0)
}

fn shape_backward(call: &BoundCall<'_>, form: &Form) -> Option<Vec<Arg>> {
    let input = call.tensor("input")?;
    let weight = call.tensor("weight");
    let affine = |ret| match weight.filter(|_| is_requested(call, ret)) {
        Some(weight) => Arg::Tensor(Tensor::contiguous(&weight.shape, weight.dtype)),
        None => Arg::None,
    };
    let mut all = vec![Arg::Tensor(Tensor::contiguous(&input.shape, input.dtype)), affine(1)];
    if form.biased {
        all.push(affine(2));
    }
    Some(all)
}

fn backward(call: &BoundCall<'_>, form: &Form) -> Option<Lowering> {
    let input = call.tensor("input")?;
    let (kernel, _) = kernel(call, form, input, Pass::Backward)?;
    if input.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let weight = read(call, "weight");
    let affine = |ret: u16| -> Option<Operand> {
        weight.filter(|_| is_requested(call, ret.into())).map(|weight| output_bytes(ret, weight.bytes))
    };
    let saved = form.statistics.iter().map(|name| read(call, name));
    let operands = [
        read(call, "grad_out"),
        read(call, "input"),
        weight,
        is_requested(call, 0).then(|| output_bytes(0, input.bytes())),
        affine(1),
        if form.biased { affine(2) } else { None },
    ];
    Some(work(kernel, input.dtype, operands.into_iter().chain(saved), input.numel().saturating_mul(14)))
}

/// Number of rows above which rows narrower than `NARROW` are first summed in parts, at most as many as `PARTS` allows.
const MANY_ROWS: u64 = 64 << 10;
const NARROW: u64 = 32 * 66;
const PARTS: u64 = 32 << 10;
/// Rows of a part; a block also sums this number of columns together.
const ROWS_OF_A_PART: u64 = 32;

/// Returns the calls of a layer norm's gradient: copies of operands that are not contiguous, and if rows are many and narrow, also
/// the sums of the parts of the gradients of weight and bias.
fn around_backward(call: &BoundCall<'_>) -> Vec<OpCall> {
    let copies =
        ["grad_out", "input"].into_iter().filter_map(|name| call.tensor(name).and_then(made_contiguous));
    let sizes = call.tensor("input").and_then(|input| rows(call, &LAYER, input));
    let sums = match (sizes, call.tensor("weight")) {
        (Some((rows, length)), Some(weight)) if rows > MANY_ROWS && length < NARROW => {
            let across = length.div_ceil(32).max(1);
            let parts = rows.div_ceil(ROWS_OF_A_PART).min(PARTS / across);
            let parts = Tensor::contiguous(&[parts as i64, length as i64], weight.dtype);
            let sum =
                child(call, "aten::sum", vec![Arg::Tensor(parts), ints(&[0]), Arg::Bool(false), Arg::None]);
            [1, 2].iter().filter(|&&ret| is_requested(call, ret)).map(|_| sum.clone()).collect()
        }
        _ => Vec::new(),
    };
    copies.chain(sums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;

    fn tensor(shape: &[i64]) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, F32))
    }

    #[test]
    fn layer_norm_keeps_two_statistics_a_row() {
        let sizes = Arg::Ints([64].as_slice().into());
        let inputs = vec![tensor(&[4, 8, 64]), sizes, tensor(&[64]), tensor(&[64]), Arg::Float(1e-5)];
        let call = OpCall::new("aten::native_layer_norm", inputs);
        let lowered = OpSet::standard().lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Norm(norm) = kernel.kernel else { panic!("{kernel:?}") };
        assert_eq!((norm.rows, norm.length, norm.affine), (32, 64, true));
        assert_eq!((kernel.bytes_read(), kernel.bytes_written()), (8192 + 512, 8192 + 256));
        let outputs = OpSet::standard().outputs(&call);
        assert_eq!(outputs.map(|all| all[1].tensors()[0].shape.to_vec()), Some(vec![4, 8, 1]));
        let backward = OpSet::standard().backward(&call);
        let lowered = OpSet::standard().lower(&backward[0]);
        assert_eq!(lowered.kernel().map(crate::KernelCall::bytes_written), Some(8192 + 512));
    }

    #[test]
    fn group_norm_has_rows_of_groups() {
        let sizes = [2, 6, 25, 3].map(Arg::Int);
        let inputs = [tensor(&[2, 6, 5, 5]), tensor(&[6]), tensor(&[6])].into_iter().chain(sizes);
        let lowered = OpSet::standard().lower(&OpCall::new("aten::native_group_norm", inputs.collect()));
        let Some(Kernel::Norm(norm)) = lowered.kernel().map(|call| call.kernel.clone()) else { panic!() };
        assert_eq!((norm.rows, norm.length, norm.channels), (6, 50, 2));
    }

    #[test]
    fn narrow_rows_are_summed_in_parts() {
        let sums = |rows: i64, length: i64| {
            let wide = || tensor(&[length]);
            let inputs = [tensor(&[rows, length]), tensor(&[rows, length]), ints(&[length])].into_iter();
            let rest = [tensor(&[rows, 1]), tensor(&[rows, 1]), wide(), wide(), ints(&[1, 1, 1])];
            let call = OpCall::new("aten::native_layer_norm_backward", inputs.chain(rest).collect());
            let shapes = |child: &OpCall| child.tensor_at(0).map(|parts| parts.shape.to_vec());
            OpSet::standard().expand(&call).iter().filter_map(shapes).collect::<Vec<_>>()
        };
        assert_eq!(sums(102_400, 64), [[3200, 64], [3200, 64]]);
        assert_eq!(sums(10_240_000, 64), [[16_384, 64], [16_384, 64]]);
        assert!(sums(4096, 64).is_empty() && sums(102_400, 4096).is_empty());
    }
}
