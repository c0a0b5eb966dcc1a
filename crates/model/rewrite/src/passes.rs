//! The forward and the backward pass of a step.

use rustc_hash::FxHashSet;
use steptime_graph::HostThreadId;
use steptime_graph::execution::NodeId;
use steptime_graph::names::EventName;
use steptime_step::{OpId, StepIr, TensorId};

use crate::repeated_tensors::calls;

/// Outermost ops, apart from annotations, divided by pass. Ops of optimizers are in neither pass.
pub(crate) struct Passes {
    /// Ops of the main thread, in order: those of the forward pass and those that take gradients. On a CPU, autograd functions too.
    pub script: Vec<OpId>,
    /// Number of these before the first update.
    pub before_update: usize,
    /// Ops that take no gradient and no tensor computed from one.
    pub forward: Vec<OpId>,
    /// Functions of the autograd engine, and other ops that run outside of the main thread, in order.
    pub backward: Vec<OpId>,
}

impl Passes {
    pub fn find(step: &StepIr) -> Passes {
        let (mut script, mut backward) = (Vec::new(), Vec::new());
        let mut before_update = None;
        for op in step.running() {
            let row = &step.ops[op];
            let is_script = row.thread == HostThreadId::MAIN;
            // An update before all other ops ends the previous step.
            if is_script && !script.is_empty() && step.event(op).is_optimizer_step() {
                before_update.get_or_insert(script.len());
            }
            if row.annotation || step.outermost(op) != op || step.is_in(op, EventName::is_optimizer) {
                continue;
            }
            if is_script {
                script.push(op);
            }
            if !is_script || step.event(op).is_engine() {
                backward.push(op);
            }
        }
        let forward = before_gradients(step, &script, &backward);
        Passes { before_update: before_update.unwrap_or(script.len()), script, forward, backward }
    }

    /// Index of the last batch whose gradients a rule accumulates; 0 where there is one batch.
    pub fn last_round(&self, step: &StepIr) -> u32 {
        self.backward.iter().map(|&function| step.ops[function].round).max().unwrap_or(0)
    }

    /// Whether gradients are computed in several passes: a function runs again, or a sequence number exceeds the first one.
    pub fn are_several(&self, step: &StepIr) -> bool {
        if self.backward.iter().any(|&function| step.ops[function].again.is_some()) {
            return true;
        }
        let numbers = self.backward.iter().filter_map(|&function| step.ops[function].sequence);
        let mut numbers = numbers.peekable();
        let first = numbers.peek().copied();
        numbers.any(|number| Some(number) > first)
    }
}

/// Ops of the script that take no gradient and no tensor computed from one. No op recorded before the first backward function takes one, even where a
/// later tensor has the same address.
fn before_gradients(step: &StepIr, script: &[OpId], backward: &[OpId]) -> Vec<OpId> {
    let begins = backward.iter().filter_map(|&op| node(step, op)).min();
    let is_before = |op: &&OpId| node(step, **op).zip(begins).is_some_and(|(own, begins)| own < begins);
    let before = script.iter().rposition(|op| is_before(&op)).map_or(0, |last| last + 1);
    let mut forward: FxHashSet<TensorId> = FxHashSet::default();
    let mut later: FxHashSet<TensorId> = backward.iter().flat_map(|&op| gives(step, op)).collect();
    let mut kept = Vec::with_capacity(script.len());
    for (at, &op) in script.iter().enumerate().filter(|(_, op)| !step.event(**op).is_engine()) {
        let taken = takes(step, op);
        if at >= before && taken.iter().any(|tensor| later.contains(tensor) && !forward.contains(tensor)) {
            later.extend(gives(step, op));
        } else {
            forward.extend(taken.into_iter().chain(gives(step, op)));
            kept.push(op);
        }
    }
    kept
}

/// The execution-trace node of an op, or of the first op inside it that has one.
fn node(step: &StepIr, op: OpId) -> Option<NodeId> {
    step.subtree(op).into_iter().find_map(|op| step.ops[op].node)
}

/// Input tensors of an op and of the ops inside it, in order.
pub(crate) fn takes(step: &StepIr, op: OpId) -> Vec<TensorId> {
    calls(step, op).flat_map(|call| call.takes()).collect()
}

/// Output tensors of an op and of the ops inside it, in order.
pub(crate) fn gives(step: &StepIr, op: OpId) -> Vec<TensorId> {
    calls(step, op).flat_map(|call| call.gives()).collect()
}
