//! Tensors that no link reaches: those created without inputs, and those whose identity was not recorded. They take the sizes of similar tensors of
//! surrounding ops.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use steptime_graph::names::EventName;
use steptime_step::{Call, OpId, StepIr, TensorId};

use super::dimension_sizes::Forms;
use super::links::{Dim, is_exchange};
use super::size_formula::Form;

/// Number of surrounding ops to search.
const AROUND: usize = 3;

/// Criterion of similarity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Similarity {
    /// The whole shape.
    Shapes,
    /// A single size.
    Sizes,
}

/// The ops of a step, and the op that each backward function differentiates.
#[derive(Debug)]
pub(super) struct OpIndex {
    /// Running ops, except collectives and the ops inside them: tensors of other ranks have the samples of those.
    running: Vec<OpId>,
    forward: FxHashMap<i64, OpId>,
}

impl OpIndex {
    pub fn new(step: &StepIr, running: Vec<OpId>) -> OpIndex {
        let mut forward = FxHashMap::default();
        for &op in &running {
            let row = &step.ops[op];
            // An op that calls others has the sequence number of the first of them that autograd records: the innermost counts.
            if let (Some(number), Some(_), false) =
                (row.sequence, row.arguments(), step.is_in(op, EventName::is_engine))
            {
                forward.insert(number, op);
            }
        }
        let collectives = running.iter().filter(|&&op| is_exchange(step, op));
        let apart: FxHashSet<OpId> = collectives.flat_map(|&op| step.subtree(op)).collect();
        OpIndex { running: running.into_iter().filter(|op| !apart.contains(op)).collect(), forward }
    }

    /// The unknown sizes of tensors that follow from tensors of surrounding ops.
    pub fn adopt(&self, step: &StepIr, forms: &Forms, how: Similarity) -> Vec<(Dim, Form)> {
        let mut found = Vec::new();
        for &op in &self.running {
            let Some(call) = step.ops[op].call.as_deref() else { continue };
            let open: SmallVec<[TensorId; 4]> = call
                .takes()
                .chain(call.gives())
                .filter(|&tensor| forms.get(tensor).iter().any(Option::is_none))
                .collect();
            if open.is_empty() {
                continue;
            }
            let around = self.around(step, op);
            for tensor in open {
                match self.sibling(step, op, tensor) {
                    Some(made) => found.extend(all(tensor, &as_made(step, forms, made, tensor))),
                    None => self.one(step, forms, how, tensor, &around, &mut found),
                }
            }
        }
        found
    }

    fn one(
        &self,
        step: &StepIr,
        forms: &Forms,
        how: Similarity,
        tensor: TensorId,
        around: &[TensorId],
        found: &mut Vec<(Dim, Form)>,
    ) {
        let value = &step.tensors[tensor].value;
        // At this stage unknown sizes do not grow, so all are known.
        let known =
            |other: &&TensorId| how == Similarity::Sizes || forms.get(**other).iter().all(Option::is_some);
        let others = || around.iter().filter(known).filter(|&&other| other != tensor);
        let alike = others().filter(|&&other| step.tensors[other].value.shape == value.shape);
        if let Some(forms) = agreed(alike.map(|&other| forms.get(other))) {
            return found.extend(all(tensor, &forms));
        }
        // Tensors with an identity are reached by links only.
        if step.tensors[tensor].recorded.is_some() {
            return;
        }
        let turned = others().filter_map(|&other| turned(step, forms, other, tensor));
        if let Some(forms) = agreed(turned) {
            return found.extend(all(tensor, &forms));
        }
        if how == Similarity::Shapes {
            return;
        }
        let numel = value.numel();
        let as_many = others().filter(|&&other| step.tensors[other].value.numel() == numel && numel > 1);
        let reshaped = as_many.map(|&other| forms.reshaped(step, other, tensor, None));
        let reshaped = reshaped.filter(|forms| forms.iter().all(Option::is_some));
        if let Some(forms) = agreed(reshaped) {
            return found.extend(all(tensor, &forms));
        }
        for (at, &size) in value.shape.iter().enumerate().filter(|&(at, _)| forms.get(tensor)[at].is_none()) {
            let sizes = others().flat_map(|&other| {
                let each = step.tensors[other].value.shape.iter().zip(forms.get(other));
                each.filter(|&(&own, _)| own == size).map(|(_, form)| std::slice::from_ref(form))
            });
            if let Some(forms) = agreed(sizes).filter(|_| size > 1) {
                found.extend(forms[0].clone().map(|form| (Dim { tensor, at }, form)));
            }
        }
    }

    /// Finds the origin of an input without an identity: the last output of an earlier op inside the same recorded op that has its shape or,
    /// permuted, its sizes and strides.
    fn sibling(&self, step: &StepIr, op: OpId, tensor: TensorId) -> Option<TensorId> {
        let row = &step.tensors[tensor];
        let takes =
            |op: OpId| step.ops[op].call.as_deref().is_some_and(|call| call.takes().any(|t| t == tensor));
        if row.recorded.is_some() || row.storage.is_some() || !takes(op) {
            return None;
        }
        let whole = step.around(op).skip(1).find(|&op| step.ops[op].arguments().is_some())?;
        let inside = step.subtree(whole).into_iter().skip(1).take_while(|&other| other != op);
        let given = inside.filter_map(|op| step.ops[op].call.as_deref()).flat_map(Call::gives);
        given.filter(|&other| other != tensor && turn(step, other, tensor).is_some()).last()
    }

    /// Tensors of the surrounding ops, and of the op that a function differentiates.
    fn around(&self, step: &StepIr, op: OpId) -> Vec<TensorId> {
        let outer = step.around(op).skip(1).take(AROUND);
        // In some recordings the engine's event has the sequence number, in all of them the function itself.
        let functions = step.around(op).filter(|&op| step.event(op).is_backward());
        let number = functions.filter_map(|function| step.ops[function].sequence).next();
        let forward = number.and_then(|number| self.forward.get(&number)).copied();
        let calls = outer.chain(forward).filter_map(|op| step.ops[op].call.as_deref());
        calls.flat_map(|call| call.takes().chain(call.gives())).collect()
    }
}

/// The sizes of a tensor that is the same as another, possibly permuted.
fn as_made(step: &StepIr, forms: &Forms, made: TensorId, tensor: TensorId) -> SmallVec<[Option<Form>; 5]> {
    turned(step, forms, made, tensor).unwrap_or_default()
}

/// The sizes of a tensor from those of another, where these are permuted with equal strides.
fn turned(
    step: &StepIr,
    forms: &Forms,
    other: TensorId,
    tensor: TensorId,
) -> Option<SmallVec<[Option<Form>; 5]>> {
    let order = turn(step, other, tensor)?;
    Some(order.iter().map(|&own| forms.get(other)[own].clone()).collect())
}

/// For each dimension of a tensor, the dimension of another with the same size and stride.
fn turn(step: &StepIr, other: TensorId, tensor: TensorId) -> Option<SmallVec<[usize; 5]>> {
    let (from, to) = (&step.tensors[other].value, &step.tensors[tensor].value);
    if from.shape.len() != to.shape.len() || from.is_sparse() || to.is_sparse() {
        return None;
    }
    let place = |at: usize| {
        (0..from.shape.len())
            .find(|&own| from.shape[own] == to.shape[at] && from.strides[own] == to.strides[at])
    };
    let order: SmallVec<[usize; 5]> = (0..to.shape.len()).map(place).collect::<Option<_>>()?;
    let once = (0..order.len()).all(|own| order.contains(&own));
    once.then_some(order)
}

/// The common sizes of all, if they agree.
fn agreed<T: AsRef<[Option<Form>]>>(mut all: impl Iterator<Item = T>) -> Option<SmallVec<[Option<Form>; 5]>> {
    let first = all.next()?;
    let same = |(one, other): (&Option<Form>, &Option<Form>)| match (one, other) {
        (Some(one), Some(other)) => one.is_as_large(other),
        (Some(form), None) | (None, Some(form)) => !form.grows(),
        (None, None) => true,
    };
    all.all(|other| first.as_ref().iter().zip(other.as_ref()).all(same)).then(|| first.as_ref().into())
}

fn all(tensor: TensorId, forms: &[Option<Form>]) -> Vec<(Dim, Form)> {
    let each = forms.iter().enumerate();
    each.filter_map(|(at, form)| Some((Dim { tensor, at }, form.clone()?))).collect()
}
