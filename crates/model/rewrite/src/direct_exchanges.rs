//! Exchanges without copies around them: each GPU writes rows at their places in the memory of the others.

use rustc_hash::FxHashSet;
use steptime_aten::Arg;
use steptime_graph::execution::StorageId;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId};

use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// The op that sends parts of a tensor to other ranks.
const SENDS: &str = "c10d::alltoall_base_";
/// A concatenation, and one whose first list is stored within the result.
const CAT: &str = "aten::cat";
const IN_PLACE: &str = "steptime::cat_in_place";
/// The op that copies a tensor.
const CLONE: &str = "aten::clone";

/// Leaves out the copies of matrices that ranks send to one another, and of those that arrive.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectExchanges;

impl Rule for DirectExchanges {
    fn name(&self) -> &'static str {
        "direct-exchanges"
    }

    fn stage(&self) -> Stage {
        Stage::Exchanges
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, large: copies to the memory of other GPUs"
    }

    fn risk(&self) -> &'static str {
        "none for the results; the GPUs have to be linked"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let [arrived, sent] = exchanged(step);
        let mut patch = Patch::new(self.name());
        for op in step.running() {
            let Some(stored) = stored(step, op, &arrived, &sent) else { continue };
            patch.insert.push((Place::Before(op), NewOp::new(IN_PLACE, stored)));
            patch.remove.push(op);
        }
        if patch.is_empty() {
            let reason = "no tensor is copied before it is sent, or after it arrived";
            return Err(Error::NothingToDo { reason: reason.to_owned() });
        }
        patch.why = format!("{} around exchanges left out", counted(patch.remove.len(), "copy", "copies"));
        Ok(vec![patch])
    }
}

/// Storages of tensors that arrive, and of tensors that are sent.
fn exchanged(step: &StepIr) -> [FxHashSet<StorageId>; 2] {
    let sends = step.running().into_iter().filter(|&op| step.ops[op].name == SENDS);
    let pairs: Vec<Vec<TensorId>> = sends
        .filter_map(|op| step.ops[op].call.as_deref())
        .map(|call| call.inputs.iter().take(2).flat_map(Arg::tensors).copied().collect())
        .collect();
    [0, 1].map(|at| pairs.iter().filter_map(|pair| step.tensors[*pair.get(at)?].storage).collect())
}

/// The call of an op that copies exchanged tensors, as one that stores them within the result.
fn stored(
    step: &StepIr,
    op: OpId,
    arrived: &FxHashSet<StorageId>,
    sent: &FxHashSet<StorageId>,
) -> Option<Call> {
    let call = step.ops[op].call.as_deref()?;
    let is_in = |all: &FxHashSet<StorageId>, tensor: &TensorId| {
        step.tensors[*tensor].storage.is_some_and(|storage| all.contains(&storage))
    };
    let list = |at: usize| call.inputs.get(at).map_or(&[][..], Arg::tensors);
    let (within, copied) = match &*step.ops[op].name {
        CAT => (&[][..], list(0)),
        IN_PLACE => (list(0), list(1)),
        CLONE => (&[][..], list(0)),
        _ => return None,
    };
    let has_rows = |from: &TensorId| step.tensors[*from].value.strides.last() == Some(&1);
    let is_sent = step.ops[op].name == CLONE
        && copied.iter().all(has_rows)
        && call.gives().next().is_some_and(|to| is_in(sent, &to));
    let has_arrived = step.ops[op].name != CLONE && copied.iter().all(|from| is_in(arrived, from));
    if copied.is_empty() || !(is_sent || has_arrived) {
        return None;
    }
    let all = Arg::Tensors([within, copied].concat());
    let dim = if is_sent { Arg::Int(0) } else { Arg::Int(1) };
    let outputs = call.gives().map(Arg::Tensor).collect();
    Some(Call { inputs: vec![all, Arg::Tensors(Vec::new()), dim], outputs, ..Call::default() })
}
