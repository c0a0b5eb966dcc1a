//! Parts of a step: its graph, the arguments of its ops, and repairs and assumptions.

use std::path::Path;

use steptime_aten::derive::{self, OpTree};
use steptime_aten::{OpSet, retarget};
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::{Options, StepGraph};
use steptime_trace::{Meta, Note, Notes, Recording, Trace};

use super::choice::{Choice, is_timed, timing};
use crate::error::Error;
use crate::pricing::Arguments;

/// The graph of a step with its other parts.
pub(super) struct Parts {
    pub(super) graph: StepGraph,
    pub(super) arguments: Arguments,
    /// Repairs and omissions of the reader, in words.
    pub(super) notes: Vec<String>,
    /// Assumptions, in words.
    pub(super) assumed: Vec<String>,
}

impl Parts {
    /// Reads a recording: from its times where a device was timed, else from its execution trace.
    pub(super) fn read(recording: &Recording, choice: &Choice, ops: &OpSet) -> Result<Parts, Error> {
        let graph_error = |source| Error::Graph { path: recording.path.clone(), source };
        let execution =
            recording.execution.as_ref().map(ExecutionGraph::read).transpose().map_err(graph_error)?;
        match (timed(recording), execution) {
            (Some(trace), execution) => {
                let mut graph =
                    StepGraph::build(trace, &Options { step: choice.step }).map_err(graph_error)?;
                if graph.device.as_deref().is_none_or(str::is_empty) {
                    graph.device = recording.meta.as_ref().and_then(|meta| meta.device.clone());
                }
                let arguments = Arguments::from_step(&graph, execution, trace);
                let notes = trace.notes.iter().map(|(what, count)| format!("{what}: {count}")).collect();
                Ok(Parts { graph, arguments, notes, assumed: Vec::new() })
            }
            (None, Some(execution)) => match choice.step {
                Some(step) => Err(Error::OneStep { path: recording.path.clone(), step }),
                None => derived(&recording.path, execution, ops, recording.meta.as_ref()),
            },
            (None, None) => Err(Error::NoTiming { path: recording.path.clone() }),
        }
    }
}

/// The trace that times are taken from; `None` where only a CPU was timed and there is an execution trace.
pub(super) fn timed(recording: &Recording) -> Option<&Trace> {
    timing(recording).filter(|_| recording.execution.is_none() || is_timed(recording))
}

/// Number of repairs while reading, and the first kind of them: of the times, and of the execution trace.
pub(super) fn repairs(recording: &Recording) -> Option<String> {
    let ops = recording.execution.as_ref();
    // Times of a CPU are ignored where there is an execution trace.
    let looked_at = ops.is_none() || is_timed(recording);
    let times = recording.timing.as_ref().or(timing(recording)).filter(|_| looked_at);
    let all = [times.map(|trace| &trace.notes), ops.map(|trace| &trace.notes)];
    let repaired = || all.into_iter().flatten().filter(|notes| notes.repairs() > 0);
    let count: u64 = repaired().map(Notes::repairs).sum();
    let (first, _) = repaired().next()?.iter().next()?;
    let repairs = if count == 1 { "repair" } else { "repairs" };
    Some(format!("{count} {repairs} while reading: {first}"))
}

/// Position at which an execution trace ends before its step does. PyTorch writes the process node, which encloses all others, at the end.
pub(super) fn cut_at(recording: &Recording) -> Option<u64> {
    let trace = recording.execution.as_ref()?;
    let ends = [Note::Truncated, Note::DamagedCompression].map(|note| trace.notes.tally(note));
    let cut = ends.iter().filter(|tally| tally.count > 0).map(|tally| tally.first).min()?;
    let is_whole = (0..trace.nodes.name.len()).any(|row| trace.is_process(row));
    (!is_whole).then_some(cut)
}

/// The step graph of an execution trace alone, moved to the GPU where it ran on the CPU, with the assumptions made.
fn derived(path: &Path, execution: ExecutionGraph, ops: &OpSet, meta: Option<&Meta>) -> Result<Parts, Error> {
    let mut assumed = Vec::new();
    let tree = if retarget::is_on_cpu(&execution) {
        if let Some(region) = retarget::compiled_region(&execution) {
            return Err(Error::Compiled { path: path.into(), region: region.to_owned() });
        }
        let unnoted = Meta::default();
        let moved = retarget::to_cuda(&execution, ops, meta.unwrap_or(&unnoted));
        let place = if execution.fake { "with tensors that have no memory" } else { "on a CPU" };
        let copies = match moved.input_copies {
            1 => "one copy".to_owned(),
            count => format!("{count} copies"),
        };
        let there = match moved.kept_inputs {
            0 => String::new(),
            1 => "; an input that is the same in each step is on the device already".to_owned(),
            count => format!("; {count} inputs that are the same in each step are on the device already"),
        };
        assumed.push(format!(
            "recorded {place}: the step is predicted with CUDA ops, with {copies} of the batch to the device{there}"
        ));
        if !moved.unknown.is_empty() {
            let names = moved.unknown.join(", ");
            assumed.push(format!("the CUDA form of {names} is not known: the CPU form is used"));
        }
        if moved.channels_last > 0 {
            assumed.push(format!(
                "{} convolutions have channels-last inputs: their results are channels-last here, as on a GPU; the meta device gives channels first",
                moved.channels_last
            ));
        }
        moved.tree
    } else {
        OpTree::from_execution(&execution)
    };
    let derived =
        derive::from_tree(&tree, ops).map_err(|source| Error::Derive { path: path.into(), source })?;
    let arguments = Arguments::derived(&derived, &tree, execution);
    Ok(Parts { graph: derived.graph, arguments, notes: Vec::new(), assumed })
}

/// Categories of accelerator events that the reader leaves out: `mtia_ccp_events`, `xpu_kernel`.
pub(super) fn unread_accelerators(trace: &Trace) -> Vec<String> {
    let known = ["mtia", "xpu", "hpu", "privateuse1", "npu", "neuron", "tpu"];
    trace
        .notes
        .unknown_categories()
        .map(|(name, _)| name.to_owned())
        .filter(|name| known.iter().any(|prefix| name.to_ascii_lowercase().starts_with(prefix)))
        .collect()
}
