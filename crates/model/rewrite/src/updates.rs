//! Optimizer ops on chosen tables.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Arg;
use steptime_step::{Call, OpId, StepIr, TensorId};

use crate::tensor_groups::{TensorGroups, lists, longest};

/// The optimizer ops that work on tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Updates {
    /// For each table, the ops on this table alone.
    pub alone: Vec<Vec<OpId>>,
    /// Ops on lists of tensors, with the position of each table's tensor in the lists, where it has one.
    pub lists: Vec<(OpId, Vec<Option<usize>>)>,
}

impl Updates {
    /// The optimizer that updates a table: the annotation around its step.
    pub fn owner(&self, step: &StepIr, table: usize) -> Option<OpId> {
        let listed = self.lists.iter().filter(|(_, places)| places.get(table).is_some_and(Option::is_some));
        let mut ops = self.alone.get(table)?.iter().copied().chain(listed.map(|(op, _)| *op));
        owner(step, ops.next()?)
    }
}

/// Finds the updates; `tensors` holds each table and the tensors computed from its gradient.
pub(crate) fn find(step: &StepIr, tensors: Vec<FxHashSet<TensorId>>) -> Updates {
    let mut updates = Updates { alone: vec![Vec::new(); tensors.len()], lists: Vec::new() };
    let outermost = outermost(step);
    let mut owners = Owners::find(step, &outermost, &tensors);
    let mut counts = Vec::new();
    for (at, &op) in outermost.iter().enumerate() {
        let Some(call) = &step.ops[op].call else { continue };
        if longest(call) > 0 {
            updates.lists.extend(owners.places(step, &outermost, at).map(|places| (op, places)));
            counts.clear();
        } else if let Some(bag) = call.takes().find_map(|taken| owners.table(step, taken)) {
            // The op that increments its step count comes before it.
            updates.alone[bag].append(&mut counts);
            updates.alone[bag].push(op);
            call.gives().for_each(|given| owners.own(given, bag));
        } else if call.takes().chain(call.gives()).all(|tensor| step.tensors[tensor].value.shape.is_empty()) {
            counts.push(op);
        } else {
            counts.clear();
        }
    }
    updates
}

/// Tables that own the optimizers' tensors.
struct Owners {
    linked: TensorGroups,
    /// The table of a group of linked tensors; `None` where several tables are in the group, as where a temporary serves all.
    of_set: FxHashMap<usize, Option<usize>>,
    /// The table of a tensor with a known owner.
    of_tensor: FxHashMap<TensorId, usize>,
    tables: usize,
}

impl Owners {
    fn find(step: &StepIr, ops: &[OpId], tensors: &[FxHashSet<TensorId>]) -> Owners {
        let linked = TensorGroups::find(step, ops);
        let mut owners = Owners {
            linked,
            of_set: FxHashMap::default(),
            of_tensor: FxHashMap::default(),
            tables: tensors.len(),
        };
        for (table, own) in tensors.iter().enumerate() {
            for &tensor in own {
                owners.own(tensor, table);
                if let Some(set) = owners.linked.set(step, tensor) {
                    let one = owners.of_set.entry(set).or_insert(Some(table));
                    *one = one.filter(|&one| one == table);
                }
            }
        }
        owners
    }

    fn own(&mut self, tensor: TensorId, table: usize) {
        self.of_tensor.entry(tensor).or_insert(table);
    }

    /// The table of a tensor: by derivation from its gradient first, then by the groups of optimizer tensors.
    fn table(&self, step: &StepIr, tensor: TensorId) -> Option<usize> {
        let known = self.of_tensor.get(&tensor).copied();
        known.or_else(|| *self.of_set.get(&self.linked.set(step, tensor)?)?)
    }

    /// Positions of the tables' tensors in the lists of an op; `None` where there are none.
    fn listed(&self, step: &StepIr, op: OpId) -> Option<Vec<Option<usize>>> {
        let call = step.ops[op].call.as_deref()?;
        let length = longest(call);
        let mut places = vec![None; self.tables];
        for list in lists(call).filter(|list| list.len() == length) {
            for (at, &tensor) in list.iter().enumerate() {
                if let Some(table) = self.table(step, tensor) {
                    places[table] = places[table].or(Some(at));
                }
            }
        }
        places.iter().any(Option::is_some).then_some(places)
    }

    /// The same for the op at a position. Unknown positions are taken from the preceding op of the same optimizer with lists of the same length; for
    /// step counts, from the following op.
    fn places(&self, step: &StepIr, ops: &[OpId], at: usize) -> Option<Vec<Option<usize>>> {
        let own = self.listed(step, ops[at]);
        if own.as_ref().is_some_and(|places| places.iter().all(Option::is_some)) {
            return own;
        }
        let length = |op: OpId| step.ops[op].call.as_deref().map_or(0, longest);
        let (optimizer, wanted) = (owner(step, ops[at]), length(ops[at]));
        let alike = |op: &&OpId| owner(step, **op) == optimizer && length(**op) == wanted;
        let next = || ops[at + 1..].iter().filter(alike).find_map(|&op| self.listed(step, op));
        let before = || ops[..at].iter().rev().filter(alike).find_map(|&op| self.listed(step, op));
        let counts = step.ops[ops[at]].call.as_deref().is_some_and(|call| {
            lists(call).flatten().all(|&tensor| step.tensors[tensor].value.shape.is_empty())
        });
        let near = if counts { next().or_else(before) } else { before().or_else(next) };
        let Some(mut places) = own else { return near };
        for (table, near) in near.into_iter().flatten().enumerate() {
            let taken = near.is_some_and(|place| places.contains(&Some(place)));
            places[table] = places[table].or(near.filter(|_| !taken));
        }
        Some(places)
    }
}

/// The annotation of the optimizer step around an op.
pub(crate) fn owner(step: &StepIr, op: OpId) -> Option<OpId> {
    step.around(op).skip(1).find(|&op| step.event(op).is_optimizer_step())
}

/// Outermost ops within optimizer steps.
fn outermost(step: &StepIr) -> Vec<OpId> {
    let running = step.running().into_iter();
    let updates = |op: OpId| owner(step, op).is_some();
    running.filter(|&op| !step.ops[op].annotation && step.outermost(op) == op && updates(op)).collect()
}

/// A call without the items at some positions of its lists.
pub(crate) fn without(call: &Call, places: &[usize]) -> Call {
    let length = longest(call);
    let places: FxHashSet<usize> = places.iter().copied().collect();
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
