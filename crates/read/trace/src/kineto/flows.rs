//! Flow arrows from a launching call to its kernels and copies, for traces without correlations.

use rustc_hash::FxHashMap;

use super::{Builder, Stream, StreamId, ThreadId};
use crate::notes::Note;
use crate::units::Nanos;

/// One end of a flow arrow.
#[derive(Clone, Copy)]
pub(super) struct FlowEnd {
    /// Number of the arrow and its category, hashed.
    pub(super) id: u64,
    /// Whether the arrow begins here.
    pub(super) begins: bool,
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) at: Nanos,
    /// Byte offset in the file.
    pub(super) offset: u64,
}

impl Builder {
    /// Gives calls and activities that an arrow joins a correlation, where no activity has one. Arrows that join
    /// anything else are counted.
    pub(super) fn link_by_flows(&mut self) {
        let flows = std::mem::take(&mut self.flows);
        let correlated = self.trace.activities.correlation.iter().any(|&correlation| correlation != 0);
        if correlated || self.trace.activities.is_empty() {
            flows.iter().for_each(|flow| self.trace.notes.add(Note::FlowEvents, flow.offset));
            return;
        }
        let (calls, activities) = (self.calls_by_thread(), self.activities_by_stream());
        let mut begins: FxHashMap<u64, u32> = FxHashMap::default();
        for flow in flows.iter().filter(|flow| flow.begins) {
            let thread = self.thread_ids.get(&(flow.pid, flow.tid)).map(|&id| ThreadId(id));
            let around = thread.and_then(|thread| calls.get(&thread)?.around(flow.at));
            match around {
                Some(call) => _ = begins.insert(flow.id, call),
                None => self.trace.notes.add(Note::FlowEvents, flow.offset),
            }
        }
        for flow in flows.iter().filter(|flow| !flow.begins) {
            let stream = Stream { device: u32::try_from(flow.pid).unwrap_or(0), stream: flow.tid };
            let stream = self.stream_ids.get(&stream).map(|&id| StreamId(id));
            let around = stream.and_then(|stream| activities.get(&stream)?.around(flow.at));
            let Some((activity, &call)) = around.zip(begins.get(&flow.id)) else {
                self.trace.notes.add(Note::FlowEvents, flow.offset);
                continue;
            };
            // A call may have launched several activities: the number is the call's own.
            let correlation = u64::from(call) + 1;
            self.trace.activities.correlation[activity as usize] = correlation;
            self.trace.calls.correlation[call as usize] = correlation;
            self.trace.notes.add(Note::LinkedByFlow, flow.offset);
        }
    }

    fn calls_by_thread(&self) -> FxHashMap<ThreadId, Line> {
        let calls = &self.trace.calls;
        lines((0..calls.len()).map(|call| (calls.thread[call], calls.start[call], calls.end(call))))
    }

    fn activities_by_stream(&self) -> FxHashMap<StreamId, Line> {
        let activities = &self.trace.activities;
        lines(
            (0..activities.len())
                .map(|row| (activities.stream[row], activities.start[row], activities.end(row))),
        )
    }
}

/// Rows of a thread or stream, by their beginning.
#[derive(Default)]
struct Line(Vec<(Nanos, Nanos, u32)>);

impl Line {
    /// The row that began last of those that run at this time.
    fn around(&self, at: Nanos) -> Option<u32> {
        let began = self.0.partition_point(|&(start, ..)| start <= at);
        // A runtime call holds at most a few driver calls.
        let last = self.0[..began].iter().rev().take(8);
        last.filter(|&&(_, end, _)| at <= end).map(|&(.., row)| row).next()
    }
}

fn lines<K: std::hash::Hash + Eq>(rows: impl Iterator<Item = (K, Nanos, Nanos)>) -> FxHashMap<K, Line> {
    let mut lines: FxHashMap<K, Line> = FxHashMap::default();
    for (row, (key, start, end)) in rows.enumerate() {
        lines.entry(key).or_default().0.push((start, end, row as u32));
    }
    lines.values_mut().for_each(|line| line.0.sort_by_key(|&(start, ..)| start));
    lines
}
