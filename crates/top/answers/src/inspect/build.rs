//! Summarises an input.

use rayon::prelude::*;
use steptime_cost::{Process, ProfilerCost};
use steptime_graph::{self as graph, Job, Mismatch, Options, StepGraph};
use steptime_predict::{
    Choice, Error, JobGraphs, one_job, own_constants,
    step::{listed, title},
    timing,
};
use steptime_trace::{DeviceProperties, Input, Recording};

use super::super::coverage::GraphCoverage;
use super::super::execution::ExecutionReport;
use super::super::job::JobRecordingReport;
use super::super::shared::{SCHEMA, Steps, ms};
use super::super::{doubts, overheads};
use super::{Device, InspectReport, Note, Rank, measured, notes};

impl InspectReport {
    /// Inspects an input: one line per recording, and details of the selected rank, else of the first.
    ///
    /// # Errors
    /// Fails where the recordings are not the ranks of one job, or the selected rank or step is missing.
    pub fn build(input: &Input, choice: &Choice) -> Result<InspectReport, Error> {
        let chosen = chosen(input, choice)?;
        let (graphs, profiler) = rayon::join(
            || graphs(&input.recordings, chosen, choice.step),
            || own_constants(Process::Profiled).0,
        );
        let graphs = graphs?;
        let inspected = inspect(input, &graphs, chosen, &profiler)?;
        Ok(match job(input, &graphs) {
            Ok(job) => InspectReport { job, ..inspected },
            Err(mismatch) => {
                let warnings = std::iter::once(mismatch.to_string()).chain(inspected.warnings).collect();
                InspectReport { warnings, not_one_job: Some(mismatch.to_string()), ..inspected }
            }
        })
    }
}

/// Index of the recording shown in detail: that of the selected rank, else the first.
fn chosen(input: &Input, choice: &Choice) -> Result<usize, Error> {
    one_job(&input.path, &input.recordings, choice)?;
    let Some(wanted) = choice.rank else { return Ok(0) };
    let ranks: Vec<Option<u32>> = input.recordings.iter().map(|r| r.rank).collect();
    let alone = ranks.len() == 1 && ranks[0].is_none() && wanted == 0;
    let at = ranks.iter().position(|&rank| rank == Some(wanted)).or(alone.then_some(0));
    at.ok_or_else(|| Error::NoSuchRank { path: input.path.clone(), wanted, known: listed(&ranks) })
}

/// Graphs of the recordings with timing. One that cannot be built is an error only where a step was selected.
fn graphs(
    recordings: &[Recording],
    chosen: usize,
    step: Option<u32>,
) -> Result<Vec<Option<StepGraph>>, Error> {
    let build = |(index, recording): (usize, &Recording)| {
        let step = step.filter(|_| index == chosen);
        let Some(trace) = timing(recording) else {
            return match step {
                Some(_) => Err(Error::NoTiming { path: recording.path.clone() }),
                None => Ok(None),
            };
        };
        match StepGraph::build(trace, &Options { step }) {
            Ok(graph) => Ok(Some(graph)),
            Err(graph::Error::NoHostEvents) if step.is_none() => Ok(None),
            Err(source) => Err(Error::Graph { path: recording.path.clone(), source }),
        }
    };
    let built: Vec<_> = recordings.par_iter().enumerate().map(build).collect();
    built.into_iter().collect()
}

/// Joint work of the ranks; `None` where they have no common collective.
fn job(input: &Input, graphs: &[Option<StepGraph>]) -> Result<Option<JobRecordingReport>, Mismatch> {
    let timed =
        input.recordings.iter().zip(graphs).filter_map(|(recording, graph)| {
            graph.as_ref().map(|graph| (recording.rank.unwrap_or(0), graph))
        });
    let mut ranks: Vec<(u32, &StepGraph)> = timed.collect();
    if ranks.len() < 2 {
        return Ok(None);
    }
    ranks.sort_by_key(|&(rank, _)| rank);
    let job = Job::from_ranks(&ranks)?;
    let (numbers, graphs) = ranks.into_iter().unzip();
    Ok(JobRecordingReport::from_crew(&JobGraphs { numbers, graphs, job: &job }))
}

fn inspect(
    opened: &Input,
    graphs: &[Option<StepGraph>],
    chosen: usize,
    profiler: &ProfilerCost,
) -> Result<InspectReport, Error> {
    let recording = &opened.recordings[chosen];
    let graph = graphs[chosen].as_ref();
    let meta = recording.meta.as_ref();
    let samples = graph.map(|graph| &graph.samples);
    let execution = recording.execution.as_ref().map(|trace| {
        // The Kineto trace with shapes is of the same step, and so is that of a pair of loose traces.
        ExecutionReport::new(trace, recording.shaped.as_ref().or(recording.timing.as_ref()), graph)
    });
    let deep = |source| Error::Graph { path: recording.path.clone(), source };
    Ok(InspectReport {
        schema: SCHEMA,
        command: "inspect",
        input: opened.path.display().to_string(),
        name: recording.name.clone(),
        title: title(&recording.name, &recording.path, meta),
        rank: recording.rank,
        ranks: opened.recordings.iter().zip(graphs).map(|(r, graph)| rank(r, graph.as_ref())).collect(),
        job: None,
        not_one_job: None,
        device: device(recording),
        model: meta.and_then(|meta| meta.model.clone()),
        batch: meta.and_then(|meta| meta.batch),
        torch: meta.and_then(|meta| meta.torch.clone()),
        measured_step_ms: meta.and_then(|meta| meta.step_ms),
        devices: devices(recording),
        steps: graph.map(Steps::from_graph),
        period_ms: samples.and_then(|samples| samples.median_period()).map(ms),
        active_ms: samples.and_then(|samples| samples.median_active()).map(ms),
        threads: graph.map(measured::threads).unwrap_or_default(),
        streams: graph.map(measured::streams).unwrap_or_default(),
        ops: graph.map(measured::ops).unwrap_or_default(),
        kernels: graph.map(measured::kernels).unwrap_or_default(),
        overheads: graph.map(|graph| overheads::measure(graph, profiler)).unwrap_or_default(),
        coverage: graph.map(|graph| GraphCoverage::new(&graph.coverage, None)),
        execution: execution.transpose().map_err(deep)?,
        notes: all_notes(recording),
        ignored: opened.ignored.iter().map(|path| path.display().to_string()).collect(),
        warnings: warnings(recording, graph),
    })
}

fn rank(recording: &Recording, graph: Option<&StepGraph>) -> Rank {
    let trace = recording.timing.as_ref().or(recording.shaped.as_ref());
    Rank {
        rank: recording.rank,
        name: recording.name.clone(),
        device: device(recording),
        steps: graph.map(Steps::from_graph),
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

fn all_notes(recording: &Recording) -> Vec<Note> {
    let timing = recording.timing.as_ref().map(|trace| notes("timing", &trace.notes));
    let shaped = recording.shaped.as_ref().map(|trace| notes("shaped", &trace.notes));
    let execution = recording.execution.as_ref().map(|trace| notes("execution", &trace.notes));
    [timing, shaped, execution].into_iter().flatten().flatten().collect()
}

fn warnings(recording: &Recording, graph: Option<&StepGraph>) -> Vec<String> {
    let has_trace = recording.timing.is_some() || recording.shaped.is_some();
    match graph {
        Some(graph) => doubts::graph_notes(graph),
        None if has_trace => vec!["the trace has no host events: record with ProfilerActivity.CPU".into()],
        None => vec!["an execution trace alone holds no times".into()],
    }
}
