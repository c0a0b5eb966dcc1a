//! Units that are gathered and reduced together: the parameters of a block, and those outside of blocks.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Device;
use steptime_graph::execution::StorageId;
use steptime_graph::names::EventName;
use steptime_step::{OpId, StepIr, TensorId};

use crate::blocks::BlockAssignment;
use crate::data_parallel::Gradient;
use crate::passes::{Passes, takes};
use crate::tensor_groups::TensorGroups;

/// A block, or the rest of the model.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    /// Name of the block; `None` for the rest.
    pub name: Option<String>,
    /// Parameters, in the order of their first use.
    pub parameters: Vec<TensorId>,
    /// Gradients, each with the index of its parameter, in the order of the parameters.
    pub gradients: Vec<(usize, Gradient)>,
    /// Places of the first and last op in the forward pass.
    pub forward: Option<[usize; 2]>,
    /// Places of the first and last function in the backward pass.
    pub backward: Option<[usize; 2]>,
    /// The first tensor of the forward pass that the unit takes.
    pub input: Option<TensorId>,
    /// Whether the input has a gradient: the unit's gradients are then reduced as soon as that is ready.
    pub passes_on: bool,
}

/// The units of a step: those of the blocks in order, then the rest. Units without parameters are left out.
pub(super) fn find(
    step: &StepIr,
    passes: &Passes,
    found: &BlockAssignment,
    gradients: &[Gradient],
) -> Vec<Unit> {
    let whole = found.names.len();
    let mut units = vec![Unit::default(); whole + 1];
    for (unit, name) in units.iter_mut().zip(&found.names) {
        unit.name = Some(name.clone());
    }
    let mut of: Vec<usize> = found.of.iter().map(|block| block.unwrap_or(whole)).collect();
    of.resize(passes.forward.len(), whole);
    parameters(step, passes, &of, &mut units);
    // Ops after the last use of a parameter belong to the loss, not to the model.
    let trained: FxHashSet<StorageId> =
        units.iter().flat_map(|unit| &unit.parameters).filter_map(|&id| step.tensors[id].storage).collect();
    let uses = |op: OpId| {
        takes(step, op).iter().any(|&id| step.tensors[id].storage.is_some_and(|at| trained.contains(&at)))
    };
    let end = passes.forward.iter().rposition(|&op| uses(op)).map_or(0, |last| last + 1);
    let mut made: FxHashSet<TensorId> = FxHashSet::default();
    let mut numbers: FxHashMap<i64, usize> = FxHashMap::default();
    for (at, &op) in passes.forward.iter().enumerate() {
        let unit = &mut units[of[at]];
        if at < end {
            unit.forward = Some([unit.forward.map_or(at, |[first, _]| first), at]);
        }
        let is_input = |id: &TensorId| made.contains(id) && step.tensors[*id].value.dtype.is_float();
        unit.input = unit.input.or_else(|| takes(step, op).into_iter().find(is_input));
        made.extend(crate::passes::gives(step, op));
        // A function differentiates the last op with its sequence number.
        numbers.extend(step.subtree(op).into_iter().filter_map(|op| Some((step.ops[op].sequence?, at))));
    }
    functions(step, passes, (&of, end, &numbers), gradients, &mut units);
    units.retain(|unit| !unit.parameters.is_empty() && unit.forward.is_some());
    units
}

/// Finds parameters: tensors that an optimizer updates, and that the forward pass takes without making them.
fn parameters(step: &StepIr, passes: &Passes, of: &[usize], units: &mut [Unit]) {
    let running = step.running().into_iter();
    let storages =
        |op: OpId| step.ops[op].call.as_deref().into_iter().flat_map(|call| call.takes().collect::<Vec<_>>());
    let updated: FxHashSet<StorageId> = running
        .filter(|&op| step.is_in(op, EventName::is_optimizer_step))
        .flat_map(storages)
        .filter_map(|id| step.tensors[id].storage)
        .collect();
    let whole = units.len() - 1;
    let mut owner: FxHashMap<StorageId, (TensorId, usize)> = FxHashMap::default();
    let mut order = Vec::new();
    for (&op, &unit) in passes.forward.iter().zip(of) {
        for id in takes(step, op) {
            let row = &step.tensors[id];
            let Some(storage) = row.storage.filter(|storage| updated.contains(storage)) else { continue };
            // A tensor made in the step is not a parameter. An optimizer may take another tensor at its address.
            if row.made || row.value.device != Device::Cuda {
                continue;
            }
            let (_, owner) = owner.entry(storage).or_insert_with(|| {
                order.push(storage);
                (id, unit)
            });
            // A parameter shared by several blocks belongs to none of them.
            if *owner != unit {
                *owner = whole;
            }
        }
    }
    for (id, unit) in order.iter().filter_map(|storage| owner.get(storage)) {
        units[*unit].parameters.push(*id);
    }
}

/// Assigns functions of the backward pass and arriving gradients to units; a function without a known op belongs to the unit of the one before.
fn functions(
    step: &StepIr,
    passes: &Passes,
    (of, end, numbers): (&[usize], usize, &FxHashMap<i64, usize>),
    gradients: &[Gradient],
    units: &mut [Unit],
) {
    let gradients: FxHashMap<OpId, Gradient> = gradients.iter().map(|one| (one.function, *one)).collect();
    let mut come: Vec<Vec<Gradient>> = vec![Vec::new(); units.len()];
    let mut last = None;
    let mut places = Vec::with_capacity(passes.backward.len());
    for (at, &function) in passes.backward.iter().enumerate() {
        let number = step.subtree(function).into_iter().find_map(|op| step.ops[op].sequence);
        if let Some(place) = number.and_then(|number| numbers.get(&number)) {
            last = (*place < end).then_some(*place);
        }
        let Some(place) = last else { continue };
        places.push(place);
        let unit = &mut units[of[place]];
        unit.backward = Some([unit.backward.map_or(at, |[first, _]| first), at]);
        come[of[place]].extend(gradients.get(&function));
    }
    pair(step, units, come);
    for unit in units {
        unit.passes_on = unit.forward.is_some_and(|[first, _]| places.iter().any(|&place| place < first));
    }
}

/// Assigns gradients to the parameters that an optimizer updates with them. Of the others, and of several of one shape, the gradient of the parameter
/// used first comes last.
fn pair(step: &StepIr, units: &mut [Unit], come: Vec<Vec<Gradient>>) {
    let is_update = |op: &OpId| step.is_in(*op, EventName::is_optimizer_step);
    let updates: Vec<OpId> = step.running().into_iter().filter(is_update).collect();
    let linked = TensorGroups::find(step, &updates);
    // A group with several parameters does not identify one.
    let mut owners: FxHashMap<usize, Option<(usize, usize)>> = FxHashMap::default();
    for (at, unit) in units.iter().enumerate() {
        for (place, &parameter) in unit.parameters.iter().enumerate() {
            let Some(set) = linked.set(step, parameter) else { continue };
            owners.entry(set).and_modify(|owner| *owner = None).or_insert(Some((at, place)));
        }
    }
    let owner = |one: &Gradient| {
        let mut tensors = step.subtree(one.function).into_iter().flat_map(|op| {
            let call = step.ops[op].call.as_deref();
            call.map_or_else(Vec::new, |call| call.takes().chain(call.gives()).collect())
        });
        tensors.find_map(|tensor| *owners.get(&linked.set(step, tensor)?)?)
    };
    for (at, come) in come.into_iter().enumerate() {
        let mut left = Vec::new();
        for one in come {
            match owner(&one) {
                Some((unit, place)) => units[unit].gradients.push((place, one)),
                None => left.push(one),
            }
        }
        for (place, &parameter) in units[at].parameters.clone().iter().enumerate() {
            let shape = &step.tensors[parameter].value.shape;
            let like = |one: &Gradient| step.tensors[one.tensor].value.shape == *shape;
            let paired = units[at].gradients.iter().any(|(other, _)| *other == place);
            if let Some(last) = left.iter().rposition(like).filter(|_| !paired) {
                let one = left.remove(last);
                units[at].gradients.push((place, one));
            }
        }
    }
    units.iter_mut().for_each(|unit| unit.gradients.sort_by_key(|(place, _)| *place));
}
