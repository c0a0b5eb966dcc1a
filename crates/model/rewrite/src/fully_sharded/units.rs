//! What is gathered and reduced together: the parameters of a block, and those of none.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Device;
use steptime_graph::execution::StorageId;
use steptime_graph::names::EventName;
use steptime_step::{OpId, Step, TensorId};

use crate::blocks::Found;
use crate::data_parallel::Gradient;
use crate::linked::Linked;
use crate::passes::{Passes, takes};

/// A block, or what is in none.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    /// Its name; `None` of the whole.
    pub name: Option<String>,
    /// Its parameters, in the order in which they are used first.
    pub parameters: Vec<TensorId>,
    /// Its gradients, each with the place of its parameter, in the order of these.
    pub gradients: Vec<(usize, Gradient)>,
    /// The places of its first and last op in the forward pass.
    pub forward: Option<[usize; 2]>,
    /// The places of its first and last function in the backward pass.
    pub backward: Option<[usize; 2]>,
    /// The first tensor of the forward pass that it takes.
    pub input: Option<TensorId>,
    /// Whether its input has a gradient: gradients are then reduced as soon as that is there.
    pub passes_on: bool,
}

/// The units of a step: those of the blocks in order, then that of all else. Units without parameters are none.
pub(super) fn of(step: &Step, passes: &Passes, found: &Found, gradients: &[Gradient]) -> Vec<Unit> {
    let whole = found.names.len();
    let mut units = vec![Unit::default(); whole + 1];
    for (unit, name) in units.iter_mut().zip(&found.names) {
        unit.name = Some(name.clone());
    }
    let mut of: Vec<usize> = found.of.iter().map(|block| block.unwrap_or(whole)).collect();
    of.resize(passes.forward.len(), whole);
    parameters(step, passes, &of, &mut units);
    // What comes after the last parameter is not of the model, but of its loss.
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
        // The last op of a number is the one that the function differentiates.
        numbers.extend(step.subtree(op).into_iter().filter_map(|op| Some((step.ops[op].sequence?, at))));
    }
    functions(step, passes, (&of, end, &numbers), gradients, &mut units);
    units.retain(|unit| !unit.parameters.is_empty() && unit.forward.is_some());
    units
}

/// What an optimizer works on, and the forward pass takes without making it.
fn parameters(step: &Step, passes: &Passes, of: &[usize], units: &mut [Unit]) {
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
            // A tensor that the step makes is no parameter. An optimizer may take another at its address.
            if row.made || row.value.device != Device::Cuda {
                continue;
            }
            let (_, owner) = owner.entry(storage).or_insert_with(|| {
                order.push(storage);
                (id, unit)
            });
            // What several blocks share is of none of them.
            if *owner != unit {
                *owner = whole;
            }
        }
    }
    for (id, unit) in order.iter().filter_map(|storage| owner.get(storage)) {
        units[*unit].parameters.push(*id);
    }
}

/// Whose functions those of the backward pass are, and whose gradients come: of the function before.
fn functions(
    step: &Step,
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

/// Tells each unit its gradients: those that an optimizer takes with its parameters. Of others, and of several of a shape, that of the
/// parameter used first comes last.
fn pair(step: &Step, units: &mut [Unit], come: Vec<Vec<Gradient>>) {
    let is_update = |op: &OpId| step.is_in(*op, EventName::is_optimizer_step);
    let updates: Vec<OpId> = step.running().into_iter().filter(is_update).collect();
    let linked = Linked::of(step, &updates);
    // A set of several parameters tells them not apart.
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
