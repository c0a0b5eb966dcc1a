//! The patch that makes one call of a group of lookups, of their gradients and of their tables' updates.

use steptime_aten::Arg;
use steptime_graph::names::ACCUMULATE_GRAD;
use steptime_step::{Call, NewOp, OpId, Patch, Place, Step, TensorId, Uses};

use super::groups::{Group, last};
use super::inputs::{self, Inputs, Made};
use super::trained::Trained;
use super::views::Views;
use super::{gradient, results, state, trail};
use crate::new_ops::{function, ints, op};

/// Bits of an element: tables are of 32-bit floats.
const BITS: i64 = 32;
/// The number by which the op knows what it was compiled for.
const PLAN: i64 = 1;

/// The patch of a group.
pub(super) fn patch(step: &Step, group: &Group, made: &mut Made, rule: &'static str) -> Option<Patch> {
    let uses = Uses::of(step);
    let mut views = Views { step, patch: Patch::new(rule) };
    let trained: Vec<&Trained> = group.members.iter().filter_map(|member| member.trained.as_ref()).collect();
    let mut removed: Vec<OpId> = group.members.iter().map(|member| member.lookup.op).collect();
    removed.extend(trained.iter().flat_map(|trained| trained.roots.iter().copied()));
    let inputs = inputs::of(&mut views, &uses, group, &removed, made);
    let at = Place::Before(last(step, group));
    let (pooled, after) = results::of(&mut views, group);
    let calls = Calls { group, inputs: &inputs };
    for op in inputs.ops.iter().cloned().chain([calls.forward(&views, pooled)]).chain(after) {
        views.patch.insert.push((at, op));
    }
    if let (Some(optimizer), [_, ..]) = (group.optimizer, &trained[..]) {
        let first = first(step, &trained);
        let (comes, functions) = gradient::of(&mut views, &uses, group)?;
        let backward = calls.backward(&mut views, comes, optimizer);
        views
            .patch
            .insert
            .extend(functions.into_iter().chain([backward]).map(|op| (Place::Before(first), op)));
        calls.anchored(&mut views);
        state::shorten(&mut views, &trained);
    }
    let taken = group.members.iter().flat_map(|member| [Some(member.lookup.indices), member.lookup.offsets]);
    let taken: Vec<TensorId> = taken.flatten().collect();
    let mut kept = vec![inputs.indices, inputs.offsets];
    kept.extend(views.patch.insert.iter().flat_map(|(_, op)| takes(op)));
    views.patch.remove.extend(&removed);
    views.patch.remove.extend(trail::unused(step, &uses, &taken, &removed, &kept));
    views.patch.why = why(step, group, &views.patch);
    Some(views.patch)
}

/// The first function of the backward pass to run.
fn first(step: &Step, trained: &[&Trained]) -> OpId {
    let mut running = step.running().into_iter();
    running.find(|&op| trained.iter().any(|one| one.function() == op)).unwrap_or(trained[0].function())
}

/// The tensors that an op and those inside it take.
fn takes(op: &NewOp) -> Vec<TensorId> {
    let own = op.call.iter().flat_map(Call::takes);
    own.chain(op.children.iter().flat_map(takes)).collect()
}

/// The calls of the operators.
struct Calls<'c> {
    group: &'c Group,
    inputs: &'c Inputs,
}

impl Calls<'_> {
    fn tables(&self) -> Arg<TensorId> {
        Arg::Tensors(self.group.members.iter().map(|member| member.lookup.table).collect())
    }

    fn lookups(&self) -> [Arg<TensorId>; 3] {
        [Arg::Tensor(self.inputs.indices), Arg::Tensor(self.inputs.offsets), Arg::None]
    }

    fn mode(&self) -> Arg<TensorId> {
        Arg::Int(i64::from(self.group.members[0].lookup.mean))
    }

    /// The lookup, in a function of autograd where it is trained.
    fn forward(&self, views: &Views<'_>, pooled: TensorId) -> NewOp {
        let shape = views.value(pooled).shape;
        let inputs =
            [vec![self.tables()], self.lookups().to_vec(), vec![self.mode(), Arg::Int(BITS), Arg::Int(PLAN)]];
        let empty = op("aten::empty", vec![ints(&shape)], pooled);
        let pool = op("steptime::embedding_bag", inputs.concat(), pooled).with(vec![empty]);
        if self.group.optimizer.is_none() {
            return pool;
        }
        let inputs = [vec![Arg::None], self.lookups().to_vec()].concat();
        NewOp::new("_Pool", Call { inputs, ..Call::default() }).with(vec![pool])
    }

    /// Its backward, which updates the tables.
    fn backward(&self, views: &mut Views<'_>, gradient: TensorId, optimizer: &str) -> NewOp {
        let (copy, taken) = views.contiguous(gradient);
        let inputs = [
            vec![Arg::Tensor(taken), self.tables()],
            self.lookups().to_vec(),
            vec![self.mode(), Arg::Int(PLAN)],
        ];
        let call = Call { inputs: inputs.concat(), ..Call::default() };
        let step = NewOp::new(&format!("steptime::embedding_bag_backward_{optimizer}"), call);
        function("_PoolBackward", &[gradient], copy.into_iter().chain([step]).collect())
    }

    /// The tensor that autograd knows the call by has a gradient that is none: its thread passes it on.
    fn anchored(&self, views: &mut Views<'_>) {
        let step = views.step;
        let thread = step.ops[self.group.members[0].lookup.op].thread;
        let begins = |&op: &OpId| step.ops[op].name == "aten::ones_like" && step.ops[op].thread == thread;
        let Some(at) = step.running().into_iter().rfind(begins) else { return };
        let accumulate = function(ACCUMULATE_GRAD, &[], Vec::new());
        views.patch.insert.push((Place::After(at), accumulate));
    }
}

/// What is done, in words.
fn why(step: &Step, group: &Group, patch: &Patch) -> String {
    let ops: usize = patch.remove.iter().map(|&op| step.subtree(op).len()).sum();
    let members = group.members.iter().map(|member| &member.lookup);
    let columns: i64 = members.clone().map(|lookup| lookup.width).sum();
    let tables = match group.members.len() {
        1 => "one table".to_owned(),
        tables => format!("{tables} tables"),
    };
    let update =
        group.optimizer.map_or(String::new(), |optimizer| format!(", their gradients and {optimizer}"));
    let kept: u64 = group.optimizer.map_or(0, |optimizer| {
        members.map(|lookup| state::bytes(&step.tensors[lookup.table].value, optimizer)).sum()
    });
    let kept = match kept {
        0 => String::new(),
        bytes => format!(
            " ({:.0} MB of the optimizer's state are not PyTorch's and not in its peak memory)",
            bytes as f64 / 1e6
        ),
    };
    format!("lookups in {tables}, {columns} columns in all{update} become one call: {ops} ops less{kept}")
}
