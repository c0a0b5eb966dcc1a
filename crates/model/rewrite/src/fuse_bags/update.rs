//! What the optimizer does for each table.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Arg;
use steptime_graph::names::EventName;
use steptime_step::{Call, OpId, Step, TensorId};

/// The ops in the optimizer that work on tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Updates {
    /// For each bag, ops on its table alone.
    pub alone: Vec<Vec<OpId>>,
    /// Ops on lists of tensors, and the place of each bag's in them.
    pub lists: Vec<(OpId, Vec<usize>)>,
}

/// Finds them; `tensors` are each bag's table and what is made of its gradient.
pub(super) fn of(step: &Step, mut tensors: Vec<FxHashSet<TensorId>>) -> Updates {
    let mut updates = Updates { alone: vec![Vec::new(); tensors.len()], lists: Vec::new() };
    let outermost = outermost(step);
    let places = places(step, &outermost, &tensors);
    let mut counts = Vec::new();
    for &op in &outermost {
        let Some(call) = &step.ops[op].call else { continue };
        if let Some(length) = lengths(call).max() {
            updates.lists.extend(places.get(&length).map(|places| (op, places.clone())));
            counts.clear();
        } else if let Some(bag) =
            tensors.iter().position(|own| call.takes().any(|tensor| own.contains(&tensor)))
        {
            // Its count of steps comes before it.
            updates.alone[bag].append(&mut counts);
            updates.alone[bag].push(op);
            tensors[bag].extend(call.gives());
        } else if call.takes().chain(call.gives()).all(|tensor| step.tensors[tensor].value.shape.is_empty()) {
            counts.push(op);
        } else {
            counts.clear();
        }
    }
    updates
}

/// Ops in the optimizer that no other is around.
fn outermost(step: &Step) -> Vec<OpId> {
    let updates = |op: OpId| {
        let mut around = std::iter::successors(step.ops[op].parent, |&op| step.ops[op].parent);
        around.any(|op| EventName::of(&step.ops[op].name).is_optimizer_step())
    };
    let running = step.running().into_iter();
    running.filter(|&op| !step.ops[op].annotation && step.outermost(op) == op && updates(op)).collect()
}

/// For lists of each length, where the bags' tensors stand in them.
fn places(step: &Step, ops: &[OpId], tensors: &[FxHashSet<TensorId>]) -> FxHashMap<usize, Vec<usize>> {
    let mut places = FxHashMap::default();
    for call in ops.iter().filter_map(|&op| step.ops[op].call.as_ref()) {
        for arg in &call.inputs {
            let Arg::Tensors(list) = arg else { continue };
            let place = |own: &FxHashSet<TensorId>| list.iter().position(|tensor| own.contains(tensor));
            if let Some(found) = tensors.iter().map(place).collect::<Option<Vec<usize>>>() {
                places.entry(list.len()).or_insert(found);
            }
        }
    }
    places
}

fn lengths(call: &Call) -> impl Iterator<Item = usize> {
    call.inputs.iter().filter_map(|arg| if let Arg::Tensors(list) = arg { Some(list.len()) } else { None })
}

/// A call without the items of all bags but the first.
pub(super) fn shortened(call: &Call, places: &[usize]) -> Call {
    let length = lengths(call).max().unwrap_or(0);
    let stays = |at: usize| !places.iter().skip(1).any(|&place| place == at);
    fn keep<T: Clone>(list: &[T], stays: impl Fn(usize) -> bool) -> Vec<T> {
        list.iter().enumerate().filter(|(at, _)| stays(*at)).map(|(_, item)| item.clone()).collect()
    }
    let arg = |arg: &Arg<TensorId>| match arg {
        Arg::Tensors(list) if list.len() == length => Arg::Tensors(keep(list, stays)),
        Arg::Floats(list) if list.len() == length => Arg::Floats(keep(list, stays)),
        other => other.clone(),
    };
    Call {
        inputs: call.inputs.iter().map(arg).collect(),
        outputs: call.outputs.iter().map(arg).collect(),
        settings: call.settings,
    }
}
