//! Results of lookups that are stacked with other vectors: converted to a `cat` and a view, so that one call can compute its part.

use steptime_aten::Arg;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use super::index_origin;
use super::lookups::{Lookup, tensor};
use super::result_consumers::list;
use super::views::{Views, giving};
use crate::new_ops::{function, op};

/// The patches of all stacks in which some vectors, but not all, are results of lookups.
pub(super) fn patches(step: &StepIr, uses: &Uses, lookups: &[Lookup], rule: &'static str) -> Vec<Patch> {
    let mut stacks: Vec<OpId> = Vec::new();
    for lookup in lookups {
        let users = uses.consumers(lookup.result).iter().map(|&op| step.outermost(op));
        stacks.extend(users.filter(|&op| step.ops[op].name == "aten::stack"));
    }
    stacks.sort_unstable();
    stacks.dedup();
    let results: Vec<TensorId> = lookups.iter().map(|lookup| lookup.result).collect();
    stacks.into_iter().filter_map(|stack| patch(step, uses, stack, &results, rule)).collect()
}

/// The patch of one stack; `None` where it does not stack along the columns, or its gradients take an unknown path.
fn patch(step: &StepIr, uses: &Uses, stack: OpId, results: &[TensorId], rule: &'static str) -> Option<Patch> {
    let vectors = list(step, stack)?.to_vec();
    let call = step.ops[stack].call.as_deref()?;
    let out = tensor(&call.outputs, 0)?;
    let [bags, count, width] = step.tensors[out].value.shape[..] else { return None };
    let looked_up = vectors.iter().filter(|vector| results.contains(vector)).count();
    let along = matches!(call.inputs.get(1), Some(Arg::Int(1 | -2)));
    if !along || looked_up < 2 || looked_up == vectors.len() || count != vectors.len() as i64 {
        return None;
    }
    let mut views = Views { step, patch: Patch::new(rule) };
    let flat = [bags, count.saturating_mul(width)];
    if let Some(Backward { root, own, gradients }) = Backward::find(step, uses, stack, &vectors)? {
        let comes = index_origin::gradient(step, uses, root)?;
        let (reshape, seen) = views.reshape(comes, &flat);
        let before = function("ViewBackward0", &[comes], vec![reshape]);
        views.patch.insert.push((Place::Before(root), before));
        let mut narrows = Vec::with_capacity(gradients.len());
        for (at, &gradient) in (0..).zip(&gradients) {
            let (narrow, part) = views.narrow(seen, width.saturating_mul(at), &[bags, width]);
            narrows.push(giving(narrow, part, gradient));
        }
        let call = Call { inputs: vec![Arg::Tensor(seen)], ..Call::default() };
        views.patch.insert.push((Place::Before(own), NewOp::new("CatBackward0", call).with(narrows)));
        views.patch.remove.push(own);
    }
    let joined = views.tensor(&flat, out);
    let cat = op("aten::cat", vec![Arg::Tensors(vectors), Arg::Int(1)], joined);
    let (view, _) = views.view(joined, &[bags, count, width], Some(out));
    views.patch.insert.extend([cat, view].map(|op| (Place::Before(stack), op)));
    views.patch.remove.push(stack);
    views.patch.why =
        format!("a stack of {count} vectors, {looked_up} of them looked up, becomes a cat and a view");
    Some(views.patch)
}

/// The function that computes the gradient of each vector.
struct Backward {
    /// The engine's event around it.
    root: OpId,
    own: OpId,
    /// In the order of the vectors.
    gradients: Vec<TensorId>,
}

impl Backward {
    /// The backward of a stack: `Some(None)` without a backward pass, `None` where it has an unknown form.
    fn find(step: &StepIr, uses: &Uses, stack: OpId, vectors: &[TensorId]) -> Option<Option<Backward>> {
        let number = step.ops[stack].sequence;
        let is_own =
            |op: &OpId| step.ops[*op].name.starts_with("StackBackward") && !step.event(*op).is_engine();
        let mut own = step.running().into_iter().filter(is_own);
        let Some(own) = own.find(|&op| number.is_none() || step.ops[op].sequence == number) else {
            let engine = step.running().into_iter().any(|op| step.event(op).is_engine());
            return if engine { None } else { Some(None) };
        };
        let takes_apart = |op: &&OpId| matches!(&*step.ops[**op].name, "aten::select" | "aten::unbind");
        let apart = step.ops[own].children.iter().filter(takes_apart);
        let calls = apart.filter_map(|&op| step.ops[op].call.as_deref());
        let gradients: Vec<TensorId> = calls.flat_map(Call::gives).collect();
        let root = step.outermost(own);
        let made = gradients.iter().all(|&one| uses.producer(one).is_some_and(|op| step.is_within(op, own)));
        (gradients.len() == vectors.len() && made).then_some(Some(Backward { root, own, gradients }))
    }
}
