//! What optimizers do for some tables.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Arg;
use steptime_step::{Call, OpId, Step, TensorId};

/// The ops in optimizers that work on tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Updates {
    /// For each table, ops on it alone.
    pub alone: Vec<Vec<OpId>>,
    /// Ops on lists of tensors, and the place of each table's in them, where it has one.
    pub lists: Vec<(OpId, Vec<Option<usize>>)>,
}

impl Updates {
    /// The optimizer that updates a table: the annotation around its step.
    pub fn owner(&self, step: &Step, table: usize) -> Option<OpId> {
        let listed = self.lists.iter().filter(|(_, places)| places.get(table).is_some_and(Option::is_some));
        let mut ops = self.alone.get(table)?.iter().copied().chain(listed.map(|(op, _)| *op));
        owner(step, ops.next()?)
    }
}

/// Finds them; `tensors` are each table and what is made of its gradient.
pub(crate) fn of(step: &Step, mut tensors: Vec<FxHashSet<TensorId>>) -> Updates {
    let mut updates = Updates { alone: vec![Vec::new(); tensors.len()], lists: Vec::new() };
    let outermost = outermost(step);
    let places = places(step, &outermost, &tensors);
    let mut counts = Vec::new();
    for &op in &outermost {
        let Some(call) = &step.ops[op].call else { continue };
        if let Some(length) = lengths(call).max() {
            let key = (owner(step, op), length);
            updates.lists.extend(places.get(&key).map(|places| (op, places.clone())));
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

/// The annotation of the optimizer's step that an op is in.
pub(crate) fn owner(step: &Step, op: OpId) -> Option<OpId> {
    step.around(op).skip(1).find(|&op| step.event(op).is_optimizer_step())
}

/// Ops in optimizers that no other is around.
fn outermost(step: &Step) -> Vec<OpId> {
    let running = step.running().into_iter();
    let updates = |op: OpId| owner(step, op).is_some();
    running.filter(|&op| !step.ops[op].annotation && step.outermost(op) == op && updates(op)).collect()
}

/// An optimizer, and the length of lists in it.
type Length = (Option<OpId>, usize);

/// For lists of each length, where the tables' tensors stand in them.
fn places(
    step: &Step,
    ops: &[OpId],
    tensors: &[FxHashSet<TensorId>],
) -> FxHashMap<Length, Vec<Option<usize>>> {
    let mut places: FxHashMap<Length, Vec<Option<usize>>> = FxHashMap::default();
    for &op in ops {
        let Some(call) = &step.ops[op].call else { continue };
        for arg in &call.inputs {
            let Arg::Tensors(list) = arg else { continue };
            let place = |own: &FxHashSet<TensorId>| list.iter().position(|tensor| own.contains(tensor));
            let found: Vec<Option<usize>> = tensors.iter().map(place).collect();
            if found.iter().all(Option::is_none) {
                continue;
            }
            let all = places.entry((owner(step, op), list.len())).or_insert_with(|| vec![None; found.len()]);
            all.iter_mut().zip(found).for_each(|(all, found)| *all = all.or(found));
        }
    }
    places
}

fn lengths(call: &Call) -> impl Iterator<Item = usize> {
    call.inputs.iter().filter_map(|arg| if let Arg::Tensors(list) = arg { Some(list.len()) } else { None })
}

/// A call without the items at some places of its lists.
pub(crate) fn without(call: &Call, places: &[usize]) -> Call {
    let length = lengths(call).max().unwrap_or(0);
    let stays = |at: usize| !places.contains(&at);
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
