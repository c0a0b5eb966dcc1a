//! Copies of columns that updates of tables read.

use steptime_step::{OpId, StepIr, TensorId, Uses};

use crate::in_place::is_changed;
use crate::nested_uses::is_passed_on;

/// Ops that copy.
const COPIES: [&str; 2] = ["aten::clone", "aten::contiguous"];
/// Prefixes of the ops that take gradients of bags with rows at any distance: updates of tables, and their dense gradients.
const UPDATES: [&str; 2] = ["steptime::embedding_bag_backward_", "steptime::embedding_bag_dense_backward"];

/// A copy, by its outermost op.
pub(super) struct ColumnCopy {
    pub op: OpId,
    pub from: TensorId,
    pub to: TensorId,
}

/// The copies that updates of tables alone read, and whose source no op changes.
pub(super) fn find(step: &StepIr, uses: &Uses) -> Vec<ColumnCopy> {
    let clones = step.running().into_iter().filter(|&op| step.ops[op].name == "aten::clone");
    clones.filter_map(|op| copy(step, uses, op)).collect()
}

fn copy(step: &StepIr, uses: &Uses, clone: OpId) -> Option<ColumnCopy> {
    let op = step.around(clone).take_while(|&op| COPIES.contains(&&*step.ops[op].name)).last()?;
    let call = step.ops[op].call.as_deref()?;
    let (from, to) = (call.takes().next()?, call.gives().next()?);
    let value = &step.tensors[from].value;
    // Updates read vectors of four elements.
    let is_rows =
        value.shape.len() == 2 && value.strides.last() == Some(&1) && value.offset.is_multiple_of(4);
    let reads = |&reader: &OpId| {
        let is_update = UPDATES.iter().any(|name| step.ops[reader].name.starts_with(name));
        is_update || step.is_within(reader, op) || is_passed_on(step, reader, to)
    };
    let is_read = uses.consumers(to).iter().all(reads);
    (is_rows && is_read && !is_changed(step, from)).then_some(ColumnCopy { op, from, to })
}
