//! Results of lookups that two concatenations take: the later one takes the result of the earlier one, so that one call can compute it, and the sum
//! of both gradients.

use steptime_aten::Arg;
use steptime_step::{OpId, Patch, Place, StepIr, TensorId, Uses};

use super::index_origin::{self, maker};
use super::lookups::{Lookup, tensor};
use super::result_consumers::list;
use super::table_training;
use super::views::{Views, giving};
use crate::in_place::is_changed;
use crate::new_ops::{function, op};

/// The patch of one pair of concatenations; `None` where there is none, or its gradients take an unknown path.
pub(super) fn patch(step: &StepIr, uses: &Uses, lookups: &[Lookup], rule: &'static str) -> Option<Patch> {
    let cats: Vec<OpId> = step.running().into_iter().filter(|&op| is_of_columns(step, op)).collect();
    cats.iter().enumerate().find_map(|(at, &first)| {
        let pair = |&second: &OpId| Pair::find(step, uses, lookups, [first, second])?.patch(step, uses, rule);
        cats[at + 1..].iter().find_map(pair)
    })
}

/// Whether an op concatenates columns of matrices.
fn is_of_columns(step: &StepIr, op: OpId) -> bool {
    let row = &step.ops[op];
    let is_cat = &*row.name == "aten::cat" && step.outermost(op) == op && !row.captured;
    let call = row.call.as_deref().filter(|_| is_cat);
    call.is_some_and(|call| matches!(call.inputs.get(1), Some(Arg::Int(1 | -1))))
}

/// Two concatenations, the later one with all inputs of the earlier one in order, which are results of lookups that no other op takes.
struct Pair<'l> {
    first: OpId,
    second: OpId,
    members: Vec<&'l Lookup>,
    /// Position of the first of them in the list of the second concatenation.
    at: usize,
    /// Result of the first concatenation.
    joined: TensorId,
}

impl<'l> Pair<'l> {
    fn find(
        step: &StepIr,
        uses: &Uses,
        lookups: &'l [Lookup],
        [first, second]: [OpId; 2],
    ) -> Option<Pair<'l>> {
        let (own, other) = (list(step, first)?, list(step, second)?);
        let joined = given(step, first)?;
        let at = other.windows(own.len()).position(|run| run == own)?;
        let once = own.iter().all(|one| [own, other].iter().all(|list| count(list, *one) == 1));
        let same_type = step.tensors[joined].value.dtype == step.tensors[given(step, second)?].value.dtype;
        if own.len() < 2 || own.len() == other.len() || !once || !same_type || is_changed(step, joined) {
            return None;
        }
        let member = |&result: &TensorId| {
            let lookup = lookups.iter().find(|lookup| lookup.result == result)?;
            let takes =
                |&op: &OpId| step.is_within(op, lookup.op) || [first, second].contains(&step.outermost(op));
            let is_flat = step.tensors[result].value.shape.len() == 2;
            (is_flat && uses.consumers(result).iter().all(takes)).then_some(lookup)
        };
        let members = own.iter().map(member).collect::<Option<_>>()?;
        Some(Pair { first, second, members, at, joined })
    }

    fn patch(&self, step: &StepIr, uses: &Uses, rule: &'static str) -> Option<Patch> {
        let mut views = Views { step, patch: Patch::new(rule) };
        let members: Vec<Lookup> = self.members.iter().map(|&lookup| lookup.clone()).collect();
        let trained = table_training::find(step, uses, &members);
        if trained.iter().any(Option::is_some) {
            let gradients: Vec<TensorId> =
                trained.iter().map(|one| Some(one.as_ref()?.gradient)).collect::<Option<_>>()?;
            self.gradients(&mut views, uses, &gradients)?;
        }
        let mut call = step.ops[self.second].call.as_deref()?.clone();
        if let Some(Arg::Tensors(list)) = call.inputs.first_mut() {
            list.splice(self.at..self.at + members.len(), [self.joined]);
        }
        views.patch.change.push((self.second, call));
        views.patch.why = format!(
            "two concatenations of the results of {} lookups: the second takes the result of the first",
            members.len()
        );
        Some(views.patch)
    }

    /// Replaces the sums of two gradients of each result by the sum of the gradients of all.
    fn gradients(&self, views: &mut Views<'_>, uses: &Uses, gradients: &[TensorId]) -> Option<()> {
        let step = views.step;
        let sums: Vec<Sum> =
            gradients.iter().map(|&gradient| Sum::find(step, uses, gradient)).collect::<Option<_>>()?;
        let roots = sums[0].roots;
        let shape = |tensor: TensorId| step.tensors[tensor].value.shape.clone();
        // The roots in the order of the concatenations, with their incoming gradients.
        let comes = |cat: OpId| {
            let whole = given(step, cat)?;
            let mut found = (0..2).filter_map(|side| {
                let gradient = index_origin::gradient(step, uses, roots[side])?;
                (shape(gradient) == shape(whole)).then_some((side, gradient))
            });
            let one = found.next()?;
            found.next().is_none().then_some(one)
        };
        let ((side, own), (other_side, other)) = (comes(self.first)?, comes(self.second)?);
        if side == other_side || sums.iter().any(|sum| sum.roots != roots) {
            return None;
        }
        let (root, other_root) = (roots[side], roots[other_side]);
        let narrows: Vec<OpId> = sums.iter().map(|sum| sum.narrows[other_side]).collect();
        let Some(Arg::Int(start)) = step.ops[narrows[0]].call.as_deref()?.inputs.get(2) else { return None };
        let (narrow, part) = views.narrow(other, *start, &shape(own));
        views.patch.insert.push((Place::Before(narrows[0]), narrow));
        views.patch.remove.extend(narrows);
        let sum = views.tensor(&shape(own), own);
        let add = op("aten::add", vec![Arg::Tensor(part), Arg::Tensor(own), Arg::Int(1)], sum);
        // As the engine does it: after the function that computes the later one of both gradients.
        let order = step.running();
        let place = |op: &OpId| order.iter().position(|other| other == op);
        let computes = [maker(step, uses, own)?, other_root].into_iter().max_by_key(place)?;
        views.patch.insert.push((Place::LastIn(computes), add));
        let mut start = 0;
        let mut inside = Vec::with_capacity(gradients.len());
        for (&gradient, lookup) in gradients.iter().zip(&self.members) {
            let (narrow, part) = views.narrow(sum, start, &[lookup.bags, lookup.width]);
            inside.push(giving(narrow, part, gradient));
            start = start.saturating_add(lookup.width);
        }
        let last = [root, other_root].into_iter().max_by_key(place)?;
        views.patch.insert.push((Place::After(last), function("CatBackward0", &[sum], inside)));
        views.patch.remove.push(root);
        views.patch.remove.extend(
            sums.iter().filter(|sum| step.outermost(sum.op) != root && sum.op != root).map(|sum| sum.op),
        );
        Some(())
    }
}

/// The sum of a result's gradients from two concatenations.
struct Sum {
    op: OpId,
    /// Backward functions of the concatenations, and the ops that take the columns.
    roots: [OpId; 2],
    narrows: [OpId; 2],
}

impl Sum {
    fn find(step: &StepIr, uses: &Uses, gradient: TensorId) -> Option<Sum> {
        let made = uses.producer(gradient)?;
        let op = step.around(made).take_while(|&op| &*step.ops[op].name == "aten::add").last()?;
        let call = step.ops[op].call.as_deref()?;
        let [Arg::Tensor(left), Arg::Tensor(right), Arg::Int(1)] = call.inputs[..] else { return None };
        let [(root, narrow), (other_root, other)] =
            [Sum::part(step, uses, left, op)?, Sum::part(step, uses, right, op)?];
        Some(Sum { op, roots: [root, other_root], narrows: [narrow, other] })
    }

    /// The backward function of a concatenation that computes columns for a sum alone, and the op that takes them.
    fn part(step: &StepIr, uses: &Uses, columns: TensorId, sum: OpId) -> Option<(OpId, OpId)> {
        let made = uses.producer(columns)?;
        let root = maker(step, uses, columns)?;
        let narrow = step.around(made).find(|&op| &*step.ops[op].name == "aten::narrow")?;
        let is_cat = step.around(narrow).any(|op| step.ops[op].name.contains("CatBackward"));
        let takes = |&op: &OpId| step.is_within(op, narrow) || step.is_within(op, sum);
        (is_cat && uses.consumers(columns).iter().all(takes)).then_some((root, narrow))
    }
}

fn count(list: &[TensorId], tensor: TensorId) -> usize {
    list.iter().filter(|&&one| one == tensor).count()
}

fn given(step: &StepIr, op: OpId) -> Option<TensorId> {
    tensor(&step.ops[op].call.as_deref()?.outputs, 0)
}
