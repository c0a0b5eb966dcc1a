//! Gaps, in which a stream ran nothing, and the host's work meanwhile.

use rustc_hash::FxHashMap;
use steptime_graph::ApiKind;
use steptime_trace::{NameId, Nanos, Stream, StreamId, Trace};

use super::device::Device;
use super::nest::Nest;

/// Cause of a gap before an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// The host launched the activity after the stream had become idle.
    Host,
    /// The same, and before the launch the host waited in a call for the device.
    Sync,
    /// The activity was launched in time, and other streams ran for most of the gap.
    Stream,
    /// The activity was launched in time, and the device ran nothing for most of the gap.
    Launch,
    /// The launching call is not known, or device records of other launches are missing.
    Unknown,
}

/// A gap, in which a stream ran nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GapRow {
    /// Number of the step of the activity that ends it; `None` outside of steps.
    pub step: Option<u32>,
    pub stream: Stream,
    /// Beginning: the end of the stream's last activity; before its first one, that of the device's last one.
    pub start: Nanos,
    /// Duration.
    pub dur: Nanos,
    /// Part at its end in which the whole device ran nothing; 0 if another stream ran then. Over all gaps of a device this
    /// adds up to the device's idle time. `None` if records of launches meanwhile are missing.
    pub idle: Option<Nanos>,
    pub cause: Cause,
    /// Activity before it on the stream.
    pub before: Option<NameId>,
    /// Activity that ends it.
    pub after: NameId,
    /// Innermost op in which the host launched the activity that ends it, or waited.
    pub host_op: Option<NameId>,
    /// Call of that launch or wait.
    pub host_call: Option<NameId>,
}

impl Cause {
    /// Returns the cause as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Sync => "sync",
            Cause::Stream => "stream",
            Cause::Launch => "launch",
            Cause::Unknown => "unknown",
        }
    }
}

pub(super) fn rows(trace: &Trace, nest: &Nest, device: &Device) -> Vec<GapRow> {
    let activities = &trace.activities;
    let waits = waits(trace);
    let mut last: FxHashMap<StreamId, (Nanos, usize)> = FxHashMap::default();
    let mut rows = Vec::new();
    for &at in &device.order {
        let at = at as usize;
        let (stream, start, idle) = (activities.stream[at], activities.start[at], device.idle[at]);
        let name = activities.name[at];
        let known = last.get(&stream).copied();
        let began = known.map_or(start - idle, |(end, _)| end);
        if began < start {
            let before = known.map(|(_, before)| before);
            let is_recorded = device.is_recorded(before, at);
            let (cause, call) = match cause(trace, device, &waits, at, began) {
                (_, call) if !is_recorded => (Cause::Unknown, call),
                found => found,
            };
            let op = call.and_then(|call| nest.around(call));
            rows.push(GapRow {
                step: device.steps[at],
                stream: trace.streams[stream.index()],
                start: began,
                dur: start - began,
                idle: is_recorded.then_some(idle),
                cause,
                before: before.map(|before| activities.name[before]),
                after: name,
                host_op: op.map(|op| trace.ops.name[op]),
                host_call: call.map(|call| trace.calls.name[call]),
            });
        }
        let end = activities.end(at);
        if known.is_none_or(|(latest, _)| latest <= end) {
            last.insert(stream, (end, at));
        }
    }
    rows
}

/// Returns the cause of a gap from `began` to the beginning of an activity, and the call that shows it.
fn cause(trace: &Trace, device: &Device, waits: &[u32], at: usize, began: Nanos) -> (Cause, Option<usize>) {
    let Some(call) = device.calls[at].map(|call| call as usize) else { return (Cause::Unknown, None) };
    let calls = &trace.calls;
    let launched = calls.start[call];
    if launched < began {
        let dur = trace.activities.start[at] - began;
        let idle = device.idle[at] * 2 > dur;
        return (if idle { Cause::Launch } else { Cause::Stream }, Some(call));
    }
    // Waiting calls are rarely nested: the relevant one is among the last few that had begun.
    const LOOK_BACK: usize = 4;
    let after = waits.partition_point(|&wait| calls.start[wait as usize] < began);
    let recent = waits[..after].iter().rev().take(LOOK_BACK).map(|&wait| wait as usize);
    let spans = |wait: &usize| (began..=launched).contains(&calls.end(*wait)) && *wait != call;
    match { recent }.find(spans) {
        Some(wait) => (Cause::Sync, Some(wait)),
        None => (Cause::Host, Some(call)),
    }
}

/// Returns the calls in which the host may wait for the device, by their beginning.
fn waits(trace: &Trace) -> Vec<u32> {
    let may_wait = |name: &str| {
        let kind = ApiKind::from_name(name);
        kind.synchronises() || matches!(kind, ApiKind::BlockingCopy | ApiKind::Copy)
    };
    let names: Vec<bool> = trace.names.iter().map(|(_, name)| may_wait(name)).collect();
    let calls = &trace.calls;
    let mut found: Vec<u32> =
        (0..calls.len() as u32).filter(|&call| names[calls.name[call as usize].index()]).collect();
    found.sort_by_key(|&call| (calls.start[call as usize], call));
    found
}
