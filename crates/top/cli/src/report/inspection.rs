//! Puts what is in an input into words.

use steptime::cost::ProfilerCost;
use steptime::graph::StepGraph;
use steptime::trace::{DeviceProperties, Input, Recording};

use super::json::{SCHEMA, Steps, ms};
use super::json_coverage::CoverageJson;
use super::json_execution::ExecutionJson;
use super::json_inspect::{Answer, Device, NoteJson, Rank, notes};
use super::{json_overheads, measured};

/// All of an input: a line for each recording, and one of them in detail.
pub fn of(
    input: &str,
    opened: &Input,
    graphs: &[Option<StepGraph>],
    chosen: usize,
    profiler: &ProfilerCost,
) -> Answer {
    let recording = &opened.recordings[chosen];
    let graph = graphs[chosen].as_ref();
    let meta = recording.meta.as_ref();
    let samples = graph.map(|graph| &graph.samples);
    Answer {
        schema: SCHEMA,
        command: "inspect",
        input: input.to_owned(),
        name: recording.name.clone(),
        rank: recording.rank,
        ranks: opened.recordings.iter().zip(graphs).map(|(r, graph)| rank(r, graph.as_ref())).collect(),
        device: device(recording),
        model: meta.and_then(|meta| meta.model.clone()),
        batch: meta.and_then(|meta| meta.batch),
        torch: meta.and_then(|meta| meta.torch.clone()),
        measured_step_ms: meta.and_then(|meta| meta.step_ms),
        devices: devices(recording),
        steps: graph.map(Steps::of),
        period_ms: samples.and_then(|samples| samples.median_period()).map(ms),
        active_ms: samples.and_then(|samples| samples.median_active()).map(ms),
        threads: graph.map(measured::threads).unwrap_or_default(),
        streams: graph.map(measured::streams).unwrap_or_default(),
        ops: graph.map(measured::ops).unwrap_or_default(),
        kernels: graph.map(measured::kernels).unwrap_or_default(),
        overheads: graph.map(|graph| json_overheads::of_graph(graph, profiler)).unwrap_or_default(),
        coverage: graph.map(|graph| CoverageJson::new(&graph.coverage, None)),
        execution: recording.execution.as_ref().map(|trace| {
            // The Kineto trace with shapes is of the same step; a pair of loose traces is one, too.
            ExecutionJson::new(trace, recording.shaped.as_ref().or(recording.timing.as_ref()))
        }),
        notes: all_notes(recording),
        ignored: opened.ignored.iter().map(|path| path.display().to_string()).collect(),
        warnings: warnings(recording, graph),
    }
}

fn rank(recording: &Recording, graph: Option<&StepGraph>) -> Rank {
    let trace = recording.timing.as_ref().or(recording.shaped.as_ref());
    Rank {
        rank: recording.rank,
        name: recording.name.clone(),
        device: device(recording),
        steps: graph.map(Steps::of),
        period_ms: graph.and_then(|graph| graph.samples.median_period()).map(ms),
        active_ms: graph.and_then(|graph| graph.samples.median_active()).map(ms),
        host_ops: trace.map_or(0, |trace| trace.ops.len()),
        activities: trace.map_or(0, |trace| trace.activities.len()),
        nodes: recording.execution.as_ref().map_or(0, |execution| execution.nodes.len()),
    }
}

fn device(recording: &Recording) -> Option<String> {
    let traces = [&recording.timing, &recording.shaped];
    let named = traces.into_iter().flatten().find_map(|trace| trace.devices.first());
    named.map(|device| device.name.clone()).or_else(|| recording.meta.as_ref()?.device.clone())
}

fn devices(recording: &Recording) -> Vec<Device> {
    let traces = [&recording.timing, &recording.shaped];
    let described = traces.into_iter().flatten().find(|trace| !trace.devices.is_empty());
    let device = |d: &DeviceProperties| Device {
        id: d.id,
        name: d.name.clone(),
        memory_bytes: d.total_global_mem.map(|bytes| bytes.0),
        compute_capability: d
            .compute_major
            .zip(d.compute_minor)
            .map(|(major, minor)| format!("{major}.{minor}")),
        multiprocessors: d.num_sms,
        l2_bytes: d.l2_cache.map(|bytes| bytes.0),
    };
    described.map(|trace| trace.devices.iter().map(device).collect()).unwrap_or_default()
}

fn all_notes(recording: &Recording) -> Vec<NoteJson> {
    let timing = recording.timing.as_ref().map(|trace| notes("timing", &trace.notes));
    let shaped = recording.shaped.as_ref().map(|trace| notes("shaped", &trace.notes));
    let execution = recording.execution.as_ref().map(|trace| notes("execution", &trace.notes));
    [timing, shaped, execution].into_iter().flatten().flatten().collect()
}

fn warnings(recording: &Recording, graph: Option<&StepGraph>) -> Vec<String> {
    let has_trace = recording.timing.is_some() || recording.shaped.is_some();
    match graph {
        Some(graph) => super::warnings::of_graph(graph),
        None if has_trace => vec!["the trace has no host events: record with ProfilerActivity.CPU".into()],
        None => vec!["an execution trace alone holds no times".into()],
    }
}
