//! Reordering of elements, and copies of parts into zeros.

use std::ops::Range;

use crate::axes::axis;
use smallvec::SmallVec;

use crate::bound_call::BoundCall;
use crate::build_lowering::{self, copied, one, result};
use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Elementwise, Kernel, Layout, Steps, Work};
use crate::layout;
use crate::memory_key::Place;
use crate::op_def::{Lowering, OpDef};
use crate::operands::{read, read_at};

/// Defines an op that writes each element of its result from one of its input.
macro_rules! moves {
    ($name:literal) => {
        OpDef::leaf(&[$name], |call| moved(call, &$name[6..])).outputs(same)
    };
}

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    moves!("aten::tril"),
    moves!("aten::triu"),
    moves!("aten::tril_"),
    moves!("aten::triu_"),
    OpDef::leaf(&["aten::roll"], roll).outputs(same).expand(rolls),
    OpDef::leaf(&["aten::flip"], flip).outputs(same),
    OpDef::composite(&["aten::rot90", "aten::fliplr", "aten::flipud"]),
    OpDef::composite(&["aten::repeat", "aten::tile"]).outputs(repeated).expand(repeat),
    OpDef::leaf(&["aten::repeat_interleave"], interleave),
    OpDef::composite(&["aten::pad"])
        .expand(|call| vec![OpCall::new("aten::constant_pad_nd", call.inputs.clone())]),
    OpDef::composite(&["aten::constant_pad_nd"]).outputs(padded).expand(pad),
    OpDef::composite(&["aten::slice_backward"]).outputs(whole).expand(put_slice),
    OpDef::composite(&["aten::select_backward"]).outputs(whole).expand(put_select),
    OpDef::composite(&[
        "aten::diagonal_backward",
        "aten::diag_embed",
        "aten::block_diag",
        "aten::pixel_shuffle",
    ]),
    OpDef::composite(&["aten::pixel_unshuffle"]),
    OpDef::composite(&["aten::one_hot"]).outputs(classes).expand(one_hot),
];

fn same(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    one(&call.tensor("self")?.shape, call.tensor("self")?.dtype)
}

/// Returns the layout of elements addressed by their coordinates, for any strides.
fn strided(tensor: &Tensor) -> Layout {
    let dims = tensor.shape.iter().filter(|&&size| size != 1).count() as u8;
    let run = tensor.shape.last().copied().unwrap_or(1).max(1) as u64;
    Layout::Strided { dims, run_in: run, run_out: tensor.numel(), broadcast: false, steps: Steps::default() }
}

fn moved(call: &BoundCall<'_>, op: &'static str) -> Option<Lowering> {
    let from = call.tensor("self")?;
    let elements =
        Elementwise { op, work: Work::Light, numel: from.numel(), inputs: 1, layout: strided(from) };
    let to = result(call, 0, &from.shape, from.dtype);
    Some(build_lowering::work(Kernel::Elementwise(elements), from.dtype, [read(call, "self"), Some(to)], 0))
}

/// Returns the launches of a roll along one dimension; along none or several it calls itself.
fn roll(call: &BoundCall<'_>) -> Option<Lowering> {
    if call.ints("dims").is_none_or(|dims| dims.len() != 1) {
        return Some(Lowering::Children);
    }
    moved(call, "roll")
}

/// Returns the calls for the first dimension, and for the others.
fn rolls(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(from), Some(shifts), Some(dims)) =
        (call.tensor("self"), call.ints("shifts"), call.ints("dims"))
    else {
        return Vec::new();
    };
    if dims.len() < 2 || shifts.len() != dims.len() {
        return Vec::new();
    }
    let place = call
        .outputs
        .first()
        .and_then(|given| given.tensors().first())
        .map_or(Place::UNKNOWN, |given| given.place);
    let first = Tensor { device: from.device, place, ..Tensor::contiguous(&from.shape, from.dtype) };
    let along = |from: Arg, at: Range<usize>, outputs| {
        let inputs = vec![from, Arg::Ints(shifts[at.clone()].into()), Arg::Ints(dims[at].into())];
        OpCall { outputs, ..OpCall::new("aten::roll", inputs) }
    };
    let given = vec![Arg::Tensor(first.clone())];
    vec![
        along(call.arg_or_none("self"), 0..1, given),
        along(Arg::Tensor(first), 1..dims.len(), call.outputs.clone()),
    ]
}

/// Returns the launches of a flip. A dimension along which all elements are the same does not change: then only a copy remains.
fn flip(call: &BoundCall<'_>) -> Option<Lowering> {
    let from = call.tensor("self")?;
    let dims = call.ints("dims")?;
    let still = |dim: i64| {
        axis(dim, from.shape.len())
            .is_none_or(|at| from.strides.get(at) == Some(&0) || from.size(at as i64) <= 1)
    };
    if dims.iter().all(|&dim| still(dim)) { Some(Lowering::Children) } else { moved(call, "flip") }
}

/// Returns the repetitions of each dimension; `tile` has another name for them than `repeat`.
fn repeats(call: &BoundCall<'_>) -> Option<SmallVec<[i64; 4]>> {
    call.ints(if call.has("repeats") { "repeats" } else { "dims" })
}

/// Returns the shape of a repeated tensor.
fn repeated(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (from, times) = (call.tensor("self")?, repeats(call)?);
    let rank = from.shape.len().max(times.len());
    let own = |list: &[i64], at: usize| (at + list.len()).checked_sub(rank).map_or(1, |at| list[at]);
    let shape: Vec<i64> = (0..rank).map(|at| own(&from.shape, at).saturating_mul(own(&times, at))).collect();
    one(&shape, from.dtype)
}

/// Returns the calls of a repeat: one broadcast copy into views of the result.
fn repeat(call: &BoundCall<'_>) -> Vec<OpCall> {
    let to = || repeated(call)?.first()?.tensors().first().cloned();
    let (Some(from), Some(times), Some(to)) = (call.tensor("self"), repeats(call), to()) else {
        return Vec::new();
    };
    let rank = to.shape.len();
    let (mut shape, mut strides, mut source) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..rank {
        let own = (at + from.shape.len()).checked_sub(rank);
        let count = (at + times.len()).checked_sub(rank).map_or(1, |at| times[at]);
        let size = own.map_or(1, |at| from.shape[at]);
        shape.extend([count, size]);
        strides.extend([to.strides[at].saturating_mul(size), to.strides[at]]);
        source.extend([0, own.and_then(|at| from.strides.get(at)).copied().unwrap_or(0)]);
    }
    let (to, from) =
        (Tensor::strided(&shape, &strides, to.dtype), Tensor::strided(&shape, &source, from.dtype));
    vec![copied(&to, &from)]
}

/// Returns the launches of `repeat_interleave(repeats)`, which converts counts to places; the other forms select rows with it.
fn interleave(call: &BoundCall<'_>) -> Option<Lowering> {
    if call.inputs.len() > 2 || matches!(call.inputs.get(1), Some(Arg::Tensor(_))) {
        return Some(Lowering::Children);
    }
    let counts = call.tensor_at(0)?;
    let places = result(call, 0, &counts.shape, counts.dtype);
    let elements = Elementwise {
        op: "repeat_interleave",
        work: Work::Light,
        numel: places.bytes / counts.dtype.size(),
        inputs: 1,
        layout: layout::elementwise(counts, &[counts]),
    };
    Some(build_lowering::work(
        Kernel::Elementwise(elements),
        counts.dtype,
        [read_at(call, 0), Some(places)],
        0,
    ))
}

fn padded(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (from, pad) = (call.tensor("self")?, call.ints("pad")?);
    let rank = from.shape.len();
    let mut shape = from.shape.to_vec();
    for (at, pair) in pad.chunks_exact(2).enumerate() {
        let size = shape.get_mut(rank.checked_sub(at + 1)?)?;
        *size = size.saturating_add(pair[0]).saturating_add(pair[1]);
    }
    one(&shape, from.dtype)
}

/// Returns the calls of a pad: the whole is filled, then the part copied into it; negative padding on all sides is only a copy.
fn pad(call: &BoundCall<'_>) -> Vec<OpCall> {
    let to = || padded(call)?.first()?.tensors().first().cloned();
    let (Some(from), Some(to)) = (call.tensor("self"), to()) else { return Vec::new() };
    let shape: Vec<i64> = from.shape.iter().zip(&to.shape).map(|(&own, &padded)| own.min(padded)).collect();
    let view = Tensor::strided(&shape, &to.strides, to.dtype);
    let part = Tensor { shape: view.shape.clone(), ..from.clone() };
    if call.ints("pad").is_some_and(|pad| pad.iter().all(|&size| size <= 0)) {
        return vec![copied(&to, &part)];
    }
    let value = call.arg("value").cloned().unwrap_or(Arg::Int(0));
    vec![OpCall::new("aten::fill_", vec![Arg::Tensor(to), value]), copied(&view, &part)]
}

fn whole(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    one(&call.ints("input_sizes")?, call.tensor("grad_output")?.dtype)
}

/// Returns the calls for zeros, and for a copy of the gradient into a view of them.
fn put(call: &BoundCall<'_>, view: impl Fn(&Tensor) -> Option<Tensor>) -> Vec<OpCall> {
    let zeros = || whole(call)?.first()?.tensors().first().cloned();
    let (Some(grad), Some(zeros)) = (call.tensor("grad_output"), zeros()) else { return Vec::new() };
    let Some(view) = view(&zeros) else { return Vec::new() };
    vec![build_lowering::zeros(&zeros.shape, zeros.dtype), copied(&view, grad)]
}

fn put_slice(call: &BoundCall<'_>) -> Vec<OpCall> {
    put(call, |zeros| {
        let at = axis(call.int("dim")?, zeros.shape.len())?;
        let (start, step) = (call.int("start").unwrap_or(0), call.int("step").unwrap_or(1));
        let mut view = Tensor { shape: call.tensor("grad_output")?.shape.clone(), ..zeros.clone() };
        let stride = *zeros.strides.get(at)?;
        view.offset = u64::try_from(start.max(0).saturating_mul(stride)).ok()?;
        *view.strides.get_mut(at)? = stride.saturating_mul(step);
        Some(view)
    })
}

fn put_select(call: &BoundCall<'_>) -> Vec<OpCall> {
    put(call, |zeros| {
        let at = axis(call.int("dim")?, zeros.shape.len())?;
        let mut view = zeros.clone();
        if at >= view.strides.len() {
            return None;
        }
        view.shape.remove(at);
        let stride = view.strides.remove(at);
        view.offset = u64::try_from(call.int("index")?.max(0).saturating_mul(stride)).ok()?;
        Some(view)
    })
}

fn classes(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let labels = call.tensor("self")?;
    let mut shape = labels.shape.to_vec();
    shape.push(
        call.int("num_classes").filter(|&classes| classes > 0).or_else(|| Some(call.output(0)?.size(-1)))?,
    );
    one(&shape, labels.dtype)
}

fn one_hot(call: &BoundCall<'_>) -> Vec<OpCall> {
    let to = || classes(call)?.first()?.tensors().first().cloned();
    let (Some(labels), Some(to)) = (call.tensor("self"), to()) else { return Vec::new() };
    let mut index = labels.clone();
    index.shape.push(1);
    index.strides.push(1);
    let zeros = build_lowering::zeros(&to.shape, to.dtype);
    let inputs = vec![Arg::Tensor(to), Arg::Int(-1), Arg::Tensor(index), Arg::Int(1)];
    vec![zeros, OpCall::new("aten::scatter_", inputs)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::dtype::Dtype::F32;

    fn ints(list: &[i64]) -> Arg {
        Arg::Ints(list.into())
    }

    #[test]
    fn the_gradient_of_a_slice_is_copied_into_zeros() {
        let grad = Tensor::contiguous(&[512, 40], F32);
        let inputs =
            vec![Arg::Tensor(grad), ints(&[512, 300]), Arg::Int(1), Arg::Int(10), Arg::Int(50), Arg::Int(1)];
        let children = OpSet::standard().expand(&OpCall::new("aten::slice_backward", inputs));
        assert_eq!(children[0].name, "aten::zeros");
        let view = children[1].tensor_at(0).expect("a view");
        assert_eq!(
            (view.shape.as_slice(), view.strides.as_slice(), view.offset),
            (&[512, 40][..], &[300, 1][..], 10)
        );
    }

    #[test]
    fn each_dimension_is_rolled_by_a_kernel() {
        let from = Tensor::contiguous(&[32, 48, 40, 96], F32);
        let call = OpCall::new("aten::roll", vec![Arg::Tensor(from), ints(&[-3, 3]), ints(&[1, 2])]);
        let children = OpSet::standard().expand(&call);
        let dims: Vec<_> = children.iter().map(|child| (child.ints_at(1), child.ints_at(2))).collect();
        let one = |number: i64| Some(SmallVec::from_slice(&[number]));
        assert_eq!(dims, [(one(-3), one(1)), (one(3), one(2))]);
        assert!(children.iter().all(|child| matches!(OpSet::standard().lower(child), Lowering::Kernel(_))));
    }

    #[test]
    fn a_repeat_is_one_broadcast_copy() {
        let row = Arg::Tensor(Tensor::contiguous(&[512, 300], F32));
        let call = OpCall::new("aten::repeat", vec![row, ints(&[2, 3])]);
        assert_eq!(OpSet::standard().outputs(&call), one(&[1024, 900], F32));
        let children = OpSet::standard().expand(&call);
        let Lowering::Kernel(copy) = OpSet::standard().lower(&children[0]) else { panic!("no kernel") };
        assert_eq!((copy.bytes_read(), copy.bytes_written()), (512 * 300 * 4, 1024 * 900 * 4));
    }

    #[test]
    fn a_pad_fills_the_whole_first() {
        let image = Arg::Tensor(Tensor::contiguous(&[512, 300], F32));
        let call = OpCall::new("aten::constant_pad_nd", vec![image, ints(&[1, 2]), Arg::Int(0)]);
        assert_eq!(OpSet::standard().outputs(&call), one(&[512, 303], F32));
        assert_eq!(OpSet::standard().expand(&call).len(), 2);
    }

    #[test]
    fn what_is_all_the_same_is_not_flipped() {
        let constant = Tensor::strided(&[512, 300], &[0, 0], F32);
        let call = OpCall::new("aten::flip", vec![Arg::Tensor(constant), ints(&[1])]);
        assert_eq!(OpSet::standard().lower(&call), Lowering::Children);
    }
}
