//! Dot interaction as one op: the pairwise products of each sample's vectors, behind the first vector.

use steptime_aten::Arg;
use steptime_step::{Call, NewOp, Patch, Place, StepIr, Uses};

use super::dot::{Dot, dot};
use super::index_origin::unused;
use super::interaction_backward::{self, Backward};
use super::lookups::tensor;
use super::views::Views;
use crate::new_ops::{function, ints, op};

/// Number of the op's compiled plan.
const PLAN: i64 = 1;

/// A patch for each interaction.
pub(super) fn patches(step: &StepIr, rule: &'static str) -> Vec<Patch> {
    let uses = Uses::find(step);
    let found = step.running().into_iter().filter_map(|op| dot(step, &uses, op));
    found.filter_map(|dot| patch(step, &uses, &dot, rule)).collect()
}

/// The patch; `None` where the gradients take an unknown path.
fn patch(step: &StepIr, uses: &Uses, dot: &Dot, rule: &'static str) -> Option<Patch> {
    let mut views = Views { step, patch: Patch::new(rule) };
    let join = *dot.ops.last()?;
    let out = tensor(&step.ops[join].call.as_deref()?.outputs, 0)?;
    let empty = op("aten::empty", vec![ints(&step.tensors[out].value.shape)], out);
    let own =
        op("steptime::interaction", vec![Arg::Tensor(dot.vectors), Arg::Int(PLAN)], out).with(vec![empty]);
    let trained = interaction_backward::is_trained(step, uses, dot);
    let own = if trained {
        let call = Call { inputs: vec![Arg::Tensor(dot.vectors)], ..Call::default() };
        NewOp::new("_Interaction", call).with(vec![own])
    } else {
        own
    };
    views.patch.insert.push((Place::Before(join), own));
    views.patch.remove.extend(&dot.ops);
    if trained {
        let backward = interaction_backward::find(step, uses, dot)?;
        insert(&mut views, dot, &backward);
        backward.bypass(uses, &mut views.patch, step);
    }
    let removed = views.patch.remove.clone();
    views.patch.remove.extend(unused(step, uses, &dot.picked_by, &removed, &[]));
    let ops: usize = views.patch.remove.iter().map(|&op| step.subtree(op).len()).sum();
    let value = &step.tensors[dot.vectors].value;
    views.patch.why =
        format!("pairwise products of {} vectors become one op per pass: {ops} fewer ops", value.size(1));
    Some(views.patch)
}

/// Inserts the backward op in place of its functions.
fn insert(views: &mut Views<'_>, dot: &Dot, backward: &Backward) {
    let step = views.step;
    let shape = step.tensors[dot.vectors].value.shape.clone();
    let (copy, taken) = views.contiguous(backward.comes);
    let to = backward.gives;
    if !step.tensors[to].value.is_contiguous() {
        let value = steptime_aten::Tensor::contiguous(&shape, step.tensors[to].value.dtype);
        views.patch.reshape.push((to, value));
    }
    let empty = op("aten::empty_strided", vec![ints(&shape)], to);
    let like = op("aten::empty_like", vec![Arg::Tensor(dot.vectors)], to).with(vec![empty]);
    let inputs = vec![Arg::Tensor(taken), Arg::Tensor(dot.vectors), Arg::Int(PLAN)];
    let own = op("steptime::interaction_backward", inputs, to).with(vec![like]);
    let all = function("_InteractionBackward", &[backward.comes], copy.into_iter().chain([own]).collect());
    views.patch.insert.push((Place::Before(backward.functions[0]), all));
    views.patch.remove.extend(&backward.functions);
}
