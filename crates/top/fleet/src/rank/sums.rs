//! Ops and kernels, summed by name.

use rustc_hash::FxHashMap;
use steptime_trace::{ActivityKind, HostKind, NameId, Nanos, Stream, StreamId, Trace};

use super::device::Device;
use super::nest::Nest;
use super::step_of_time::Windows;
use crate::sketch::Sketch;

/// All ops of one name in a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpRow {
    /// Number of the step; `None` outside of steps.
    pub step: Option<u32>,
    pub name: NameId,
    /// Ops or annotations.
    pub kind: HostKind,
    /// Times on the host.
    pub times: Sketch,
    /// Time without the ops within them.
    pub own: Nanos,
    /// Number of kernels, copies and fills that they launch themselves.
    pub launched: u64,
    /// Sum of the durations of these.
    pub device: Nanos,
}

/// All kernels, or copies and fills, of one name in a step on one stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KernelRow {
    /// Number of the step; `None` outside of steps.
    pub step: Option<u32>,
    pub name: NameId,
    /// Kernels, copies or fills.
    pub kind: ActivityKind,
    pub stream: Stream,
    /// Whether they are collectives.
    pub collective: bool,
    /// Times on the device.
    pub times: Sketch,
    /// Bytes copied or filled.
    pub bytes: u64,
}

/// Returns the rows of ops, in the order in which they first appear.
pub(super) fn ops(trace: &Trace, windows: &Windows, nest: &Nest, device: &Device) -> Vec<OpRow> {
    let ops = &trace.ops;
    let each = device.ops.iter().zip(&trace.activities.dur);
    let mut launched: Vec<(u32, Nanos)> = each.filter_map(|(op, dur)| Some(((*op)?, *dur))).collect();
    launched.sort_unstable();
    let mut launched = launched.into_iter().peekable();
    let mut places: FxHashMap<(Option<u32>, NameId, HostKind), usize> = FxHashMap::default();
    let mut rows: Vec<OpRow> = Vec::new();
    for op in 0..ops.len() {
        let step = windows.number(windows.at(ops.start[op]));
        let (name, kind) = (ops.name[op], ops.kind[op]);
        let at = *places.entry((step, name, kind)).or_insert(rows.len());
        if at == rows.len() {
            let (times, own) = (Sketch::default(), Nanos::ZERO);
            rows.push(OpRow { step, name, kind, times, own, launched: 0, device: Nanos::ZERO });
        }
        let row = &mut rows[at];
        row.times.add(ops.dur[op]);
        row.own += nest.own[op];
        while let Some((_, dur)) = launched.next_if(|&(launching, _)| launching == op as u32) {
            row.launched += 1;
            row.device += dur;
        }
    }
    rows
}

/// Returns the rows of kernels, in the order in which they first appear.
pub(super) fn kernels(trace: &Trace, device: &Device) -> Vec<KernelRow> {
    let activities = &trace.activities;
    let mut places: FxHashMap<(Option<u32>, NameId, ActivityKind, StreamId), usize> = FxHashMap::default();
    let mut rows: Vec<KernelRow> = Vec::new();
    for at in 0..activities.len() {
        let (step, name) = (device.steps[at], activities.name[at]);
        let (kind, stream) = (activities.kind[at], activities.stream[at]);
        let place = *places.entry((step, name, kind, stream)).or_insert(rows.len());
        if place == rows.len() {
            let (stream, collective) = (trace.streams[stream.index()], device.collective[at]);
            let times = Sketch::default();
            rows.push(KernelRow { step, name, kind, stream, collective, times, bytes: 0 });
        }
        let row = &mut rows[place];
        row.times.add(activities.dur[at]);
        row.bytes += activities.bytes[at];
    }
    rows
}
