//! Summary of a step as measured: medians over the steps.

use std::collections::BTreeMap;

use steptime_graph::{
    self as graph, ActivityId, HostThreadId, MarkId, Role, StepGraph, StepId, StreamId, TiVec, median,
};
use steptime_sim::breakdown;
use steptime_trace::{ActivityKind, Nanos};

use super::super::shared::{KernelTime, ms};
use super::{Op, Stream, Thread};

/// Host threads.
pub fn threads(graph: &StepGraph) -> Vec<Thread> {
    let thread = |(index, thread): (HostThreadId, &graph::Thread)| {
        let ops = graph.ops.iter().filter(|op| op.thread == index && !op.annotation);
        let outermost =
            graph.ops.iter_enumerated().filter(|&(at, op)| op.thread == index && graph.is_top_level(at));
        let outside = graph.calls.iter().filter(|call| call.thread == index && call.op.is_none());
        let spans: Vec<(MarkId, MarkId)> = outermost
            .map(|(_, op)| (op.begin, op.end))
            .chain(outside.map(|call| (call.begin, call.end)))
            .collect();
        Thread {
            tid: thread.tid,
            role: role(thread.role),
            ops: ops.count(),
            calls: graph.calls.iter().filter(|call| call.thread == index).count(),
            busy_ms: ms(spans.iter().map(|&(from, to)| host_time(graph, from, to)).sum()),
        }
    };
    graph.threads.iter_enumerated().map(thread).collect()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Main => "main",
        Role::Autograd => "autograd",
        Role::Other => "other",
    }
}

/// Streams with any activity.
pub fn streams(graph: &StepGraph) -> Vec<Stream> {
    let mut rows: BTreeMap<StreamId, Stream> = BTreeMap::new();
    for (index, activity) in graph.activities.iter_enumerated() {
        let id = graph.streams[activity.stream];
        let row = rows.entry(activity.stream).or_insert(Stream {
            device: id.device,
            stream: id.stream,
            kernels: 0,
            copies: 0,
            memsets: 0,
            busy_ms: 0.0,
        });
        *match activity.kind {
            ActivityKind::Kernel => &mut row.kernels,
            ActivityKind::Memcpy => &mut row.copies,
            ActivityKind::Memset => &mut row.memsets,
        } += 1;
        row.busy_ms += ms(device_time(graph, index));
    }
    let mut rows: Vec<Stream> = rows.into_values().collect();
    rows.sort_by_key(|row| (row.device, row.stream));
    rows
}

/// Top-level ops by name, longest on the device first.
pub fn ops(graph: &StepGraph) -> Vec<Op> {
    let mut sums: BTreeMap<&str, (usize, Nanos, Nanos)> = BTreeMap::new();
    for op in graph.ops.keys().filter(|&op| graph.is_top_level(op)) {
        let row = &graph.ops[op];
        let sum = sums.entry(graph.op_name(op)).or_default();
        sum.0 += 1;
        sum.1 += host_time(graph, row.begin, row.end);
    }
    for (index, activity) in graph.activities.iter_enumerated() {
        if let Some(op) = graph.calls[activity.call].op
            && let Some(sum) = sums.get_mut(graph.op_name(graph.top_level(op)))
        {
            sum.2 += device_time(graph, index);
        }
    }
    let mut rows: Vec<(&str, (usize, Nanos, Nanos))> = sums.into_iter().collect();
    rows.sort_by_key(|&(name, (_, host, device))| (std::cmp::Reverse((device, host)), name));
    let op = |(name, (count, host, device)): (&str, _)| Op {
        name: name.to_owned(),
        count,
        host_ms: ms(host),
        device_ms: ms(device),
    };
    rows.into_iter().map(op).collect()
}

/// Kernels, copies and memsets by name, longest first.
pub fn kernels(graph: &StepGraph) -> Vec<KernelTime> {
    let durations: TiVec<ActivityId, Nanos> =
        graph.activities.keys().map(|index| device_time(graph, index)).collect();
    breakdown::by_kernel(graph, &durations).iter().map(KernelTime::new).collect()
}

fn device_time(graph: &StepGraph, activity: ActivityId) -> Nanos {
    graph.samples.median_duration(activity).unwrap_or_default()
}

fn host_time(graph: &StepGraph, from: MarkId, to: MarkId) -> Nanos {
    let samples = &graph.samples;
    let span = |step: StepId| Some(samples.mark(step, to)? - samples.mark(step, from)?);
    median(&mut samples.steps().filter_map(span).collect::<Vec<Nanos>>()).unwrap_or_default()
}
