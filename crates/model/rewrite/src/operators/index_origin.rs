//! Origin of indices and offsets: views and copies, back to a tensor that is older than the step.

use steptime_step::{OpId, StepIr, TensorId, Uses};

/// Ops whose output is a view of the input, or a copy on another device.
const SAME: [&str; 16] = [
    "aten::to",
    "aten::_to_copy",
    "aten::view",
    "aten::reshape",
    "aten::flatten",
    "aten::squeeze",
    "aten::unsqueeze",
    "aten::contiguous",
    "aten::select",
    "aten::slice",
    "aten::narrow",
    "aten::unbind",
    "aten::split",
    "aten::chunk",
    "aten::detach",
    "aten::t",
];

/// Origin of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A tensor that is older than the step.
    Older(TensorId),
    /// A copy to the device within the step.
    Copied {
        /// The op around the copy.
        op: OpId,
        /// Source of the copy, on the host and older than the step.
        from: TensorId,
        /// Output of the copy.
        to: TensorId,
    },
}

/// The origin of a tensor; `None` where the step computes it.
pub(crate) fn source(step: &StepIr, uses: &Uses, tensor: TensorId) -> Option<Source> {
    let mut now = tensor;
    loop {
        let Some(op) = maker(step, uses, now) else { return Some(Source::Older(now)) };
        let from = SAME.contains(&&*step.ops[op].name).then(|| takes(step, op)).flatten()?;
        if step.tensors[from].value.device != step.tensors[now].value.device {
            let older = uses.producer(from).is_none();
            return older.then_some(Source::Copied { op, from, to: now });
        }
        if from == now {
            return None;
        }
        now = from;
    }
}

/// The outermost op that makes a tensor.
pub(crate) fn maker(step: &StepIr, uses: &Uses, tensor: TensorId) -> Option<OpId> {
    uses.producer(tensor).map(|op| step.outermost(op))
}

fn takes(step: &StepIr, op: OpId) -> Option<TensorId> {
    step.ops[op].call.as_deref()?.takes().next()
}

/// Ops on the path to some tensors whose outputs have no other consumers; ops in `removed` no longer run.
pub(crate) fn unused(
    step: &StepIr,
    uses: &Uses,
    tensors: &[TensorId],
    removed: &[OpId],
    kept: &[TensorId],
) -> Vec<OpId> {
    let mut gone: Vec<OpId> = Vec::new();
    let mut open: Vec<TensorId> = tensors.to_vec();
    while let Some(tensor) = open.pop() {
        let Some(op) = maker(step, uses, tensor) else { continue };
        if gone.contains(&op) || removed.contains(&op) || !SAME.contains(&&*step.ops[op].name) {
            continue;
        }
        let goes =
            |user: OpId| removed.iter().chain(&gone).chain([&op]).any(|&root| step.is_within(user, root));
        let mut given = step.ops[op].call.as_deref().into_iter().flat_map(steptime_step::Call::gives);
        if given.all(|given| !kept.contains(&given) && uses.consumers(given).iter().all(|&user| goes(user))) {
            gone.push(op);
            open.extend(step.ops[op].call.as_deref().into_iter().flat_map(steptime_step::Call::takes));
        }
    }
    gone
}

/// The incoming gradient of a backward function: its recorded argument, else the first tensor inside it that another function made.
pub(crate) fn gradient(step: &StepIr, uses: &Uses, root: OpId) -> Option<TensorId> {
    let own = step.ops[root].children.first()?;
    if let Some(call) = &step.ops[*own].call {
        return call.takes().next();
    }
    let calls = step.subtree(root).into_iter().filter_map(|op| step.ops[op].call.as_deref());
    let mut taken = calls.flat_map(steptime_step::Call::takes);
    taken.find(|&taken| {
        let maker = maker(step, uses, taken);
        maker.is_some_and(|maker| maker != root && step.event(maker).is_engine())
    })
}
