//! Calls that an op makes for its own kernels.

use steptime_aten::derive::calls::{self, RuntimeCall, Work};
use steptime_aten::derive::{delegates, exchange};
use steptime_aten::{Lowering, OpSet};
use steptime_graph::{Blocking, StepGraph};

use super::marks::Items;
use crate::ids::OpId;
use crate::step::{Origin, StepIr};

/// The calls of an op itself, without those of the ops inside it.
pub(super) enum OwnCalls {
    /// The recorded calls.
    AsRecorded,
    /// The recorded calls, with other bytes and kinds of wait.
    Adjusted(Vec<PlannedCall>),
    /// New calls, which differ from the recorded ones or have none.
    Anew(Vec<PlannedCall>),
}

/// A call of the runtime.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedCall {
    pub api: &'static str,
    /// Number of inner ops that finish before it.
    pub after_children: usize,
    pub work: Option<Work>,
    pub blocking: Blocking,
    /// Kind of wait, where it changed.
    pub blocks_otherwise: Option<Blocking>,
}

/// Calls that make a stream wait for another.
const EVENT: [&str; 2] = ["cudaEventRecordWithFlags", "cudaStreamWaitEvent"];

impl PlannedCall {
    fn without_work(api: &'static str) -> PlannedCall {
        let blocking = Blocking::Never;
        PlannedCall { api, after_children: 0, work: None, blocking, blocks_otherwise: None }
    }
}

impl From<RuntimeCall> for PlannedCall {
    fn from(call: RuntimeCall) -> PlannedCall {
        PlannedCall {
            api: call.api,
            after_children: call.after_children,
            work: call.work,
            blocking: call.blocking,
            blocks_otherwise: None,
        }
    }
}

/// The calls of an op itself. `before` is the step of the recording.
pub(super) fn own_calls(
    step: &StepIr,
    before: &StepIr,
    base: &StepGraph,
    items: &Items,
    op: OpId,
    set: &OpSet,
) -> OwnCalls {
    if let Some(again) = step.ops[op].again {
        return own_calls(step, before, base, items, again, set);
    }
    if let Some(exchanged) = exchanged(step, op) {
        return OwnCalls::Anew(exchanged.into_iter().map(PlannedCall::from).collect());
    }
    if step.ops[op].waits.is_some() {
        return OwnCalls::Anew(EVENT.map(PlannedCall::without_work).into());
    }
    match step.ops[op].origin {
        Origin::Recorded(_) => OwnCalls::AsRecorded,
        Origin::Inserted(_) => OwnCalls::Anew(plan_call(step, op, set)),
        Origin::Changed(recorded, _) => {
            let made: Vec<_> = items.calls(recorded).map(|call| &base.calls[call]).collect();
            let now = plan_call(step, op, set);
            let names = made.iter().map(|call| base.names.get(call.api));
            if names.eq(now.iter().map(|call| call.api)) {
                let adjusted = made.iter().zip(now).map(|(made, planned)| PlannedCall {
                    blocks_otherwise: otherwise(made.blocking, planned.blocking),
                    ..planned
                });
                return OwnCalls::Adjusted(adjusted.collect());
            }
            // Derived calls are only the usual ones: an op that made others will again, unless its recorded launches match the derived number and
            // that number changes.
            let seen = made.iter().filter(|call| call.kind.launches()).count();
            let was = plan_call(before, OpId::from_recorded(recorded), set);
            let as_known = seen.abs_diff(launches(&was)) <= seen / SURE;
            let waited = made.iter().any(|call| waits(call.blocking));
            let waits_as_known = waited == any_waits(&was);
            let other_waits = waits_as_known && any_waits(&was) != any_waits(&now);
            if as_known && (other_waits || launches(&was) != launches(&now)) {
                OwnCalls::Anew(now)
            } else {
                OwnCalls::AsRecorded
            }
        }
    }
}

/// The calls of an op that launches a collective, of the op around it that notes it, or of one that waits for it; `None` for others.
fn exchanged(step: &StepIr, op: OpId) -> Option<Vec<RuntimeCall>> {
    let row = &step.ops[op];
    if let Some(of) = row.exchange {
        return Some(exchange::launched(of.kind));
    }
    if row.children.iter().any(|&inside| step.ops[inside].exchange.is_some()) {
        return Some(exchange::noted(row.waits.is_some()));
    }
    (row.waits.is_some() && row.name == exchange::NOTE).then(exchange::awaited)
}

/// One in this number of launches may differ from the derived number.
const SURE: usize = 3;

/// Whether a call returns only when the device is done.
fn waits(blocking: Blocking) -> bool {
    matches!(blocking, Blocking::Streams(_) | Blocking::Activity(_))
}

fn any_waits(planned: &[PlannedCall]) -> bool {
    planned.iter().any(|call| waits(call.blocking))
}

/// Number of calls that launch work on the device.
fn launches(planned: &[PlannedCall]) -> usize {
    planned.iter().filter(|call| call.work.is_some()).count()
}

/// The new kind of wait of a copy that was staged and is now made in chunks, or vice versa.
fn otherwise(was: Blocking, is: Blocking) -> Option<Blocking> {
    let chunked = |blocking: Blocking| matches!(blocking, Blocking::Chunked { .. });
    let changes = chunked(was) != chunked(is) && (was == Blocking::Never || is == Blocking::Never);
    changes.then_some(is)
}

fn plan_call(step: &StepIr, op: OpId, set: &OpSet) -> Vec<PlannedCall> {
    let (Some(call), Some(lowered)) = (step.call(op), step.lower(op, set)) else { return Vec::new() };
    let children = &step.ops[op].children;
    let names: Vec<&str> = children.iter().map(|&child| &*step.ops[child].name).collect();
    // A function of the engine that is not a known op has no launches apart from those of the ops inside it.
    let passes_on = step.event(op).is_backward() && set.find(&call.name).is_none();
    if passes_on || names.iter().any(|child| delegates(&call.name, child)) {
        return Vec::new();
    }
    match &*lowered {
        Lowering::Kernel(kernel) => {
            calls::derive(call, kernel, &names).into_iter().map(PlannedCall::from).collect()
        }
        // The ops inside an unknown op launch its kernels.
        Lowering::Unknown(kernel) if children.is_empty() => {
            calls::derive(call, kernel, &names).into_iter().map(PlannedCall::from).collect()
        }
        _ => Vec::new(),
    }
}
