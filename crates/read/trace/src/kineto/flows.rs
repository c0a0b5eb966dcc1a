//! Flow arrows from a launching call to its kernels and copies, for traces without correlations.

use rustc_hash::FxHashMap;

use super::{Stream, Trace};
use crate::repairs::Note;
use crate::units::Nanos;

/// One end of a flow arrow.
#[derive(Clone, Copy)]
pub(super) struct FlowEnd {
    /// Hash of the arrow's number and category.
    pub(super) id: u64,
    /// Whether the arrow begins here.
    pub(super) begins: bool,
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) at: Nanos,
    /// Byte offset in the file.
    pub(super) offset: u64,
}

/// Gives calls and activities that are joined by an arrow a correlation, if no activity has one. Arrows that join anything
/// else are counted. `threads` and `streams` have the ids in the trace.
pub(super) fn link(
    flows: &[FlowEnd],
    trace: &mut Trace,
    threads: &FxHashMap<(i64, i64), u32>,
    streams: &FxHashMap<Stream, u32>,
) {
    let Trace { calls, activities, notes, .. } = trace;
    if activities.is_empty() || activities.correlation.iter().any(|&correlation| correlation != 0) {
        flows.iter().for_each(|flow| notes.add(Note::FlowEvents, flow.offset));
        return;
    }
    let by_thread =
        lines((0..calls.len()).map(|row| (calls.thread[row].0, calls.start[row], calls.end(row))));
    let by_stream = lines(
        (0..activities.len())
            .map(|row| (activities.stream[row].0, activities.start[row], activities.end(row))),
    );
    let mut begins: FxHashMap<u64, u32> = FxHashMap::default();
    for flow in flows.iter().filter(|flow| flow.begins) {
        let thread = threads.get(&(flow.pid, flow.tid));
        match thread.and_then(|thread| by_thread.get(thread)?.around(flow.at)) {
            Some(call) => _ = begins.insert(flow.id, call),
            None => notes.add(Note::FlowEvents, flow.offset),
        }
    }
    for flow in flows.iter().filter(|flow| !flow.begins) {
        let stream = Stream { device: u32::try_from(flow.pid).unwrap_or(0), stream: flow.tid };
        let around = streams.get(&stream).and_then(|stream| by_stream.get(stream)?.around(flow.at));
        let Some((activity, &call)) = around.zip(begins.get(&flow.id)) else {
            notes.add(Note::FlowEvents, flow.offset);
            continue;
        };
        // A call may have launched several activities: the number is the call's own.
        let correlation = u64::from(call) + 1;
        activities.correlation[activity as usize] = correlation;
        calls.correlation[call as usize] = correlation;
        notes.add(Note::LinkedByFlow, flow.offset);
    }
}

/// Rows of a thread or stream, by their start.
#[derive(Default)]
struct Line(Vec<(Nanos, Nanos, u32)>);

impl Line {
    /// Returns the row that began last among those that run at this time.
    fn around(&self, at: Nanos) -> Option<u32> {
        let began = self.0.partition_point(|&(start, ..)| start <= at);
        // A runtime call contains at most a few driver calls.
        let last = self.0[..began].iter().rev().take(8);
        last.filter(|&&(_, end, _)| at <= end).map(|&(.., row)| row).next()
    }
}

/// Returns the rows of each thread or stream, by its id.
fn lines(rows: impl Iterator<Item = (u32, Nanos, Nanos)>) -> FxHashMap<u32, Line> {
    let mut lines: FxHashMap<u32, Line> = FxHashMap::default();
    for (row, (key, start, end)) in rows.enumerate() {
        lines.entry(key).or_default().0.push((start, end, row as u32));
    }
    lines.values_mut().for_each(|line| line.0.sort_by_key(|&(start, ..)| start));
    lines
}
