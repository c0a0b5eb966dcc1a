//! One rank of an input, with its execution graph.

use std::path::{Path, PathBuf};

use steptime_aten::derive::{self, OpTree};
use steptime_aten::{Settings, retarget};
use steptime_cost::device::Indices;
use steptime_cost::{Probe, Process};
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::{Options, StepGraph};
use steptime_trace::{Meta, Recording, Trace};

use crate::device::{Arguments, Launch};
use crate::error::Error;
use crate::fingerprint::Fingerprint;

/// Which part of an input to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only this step, by its number.
    pub step: Option<u32>,
    /// This rank; the lowest where several are there and none is named.
    pub rank: Option<u32>,
}

/// A recording, or one rank of several, ready to be predicted.
#[derive(Debug)]
pub struct Step {
    /// Where it came from.
    pub path: PathBuf,
    /// Its name: the folder's or the file's.
    pub name: String,
    /// Its rank, where known.
    pub rank: Option<u32>,
    /// Number of ranks of the input.
    pub ranks: usize,
    /// Model, batch, measured times: what the recorder wrote. Predictions read none of its times.
    pub meta: Option<Meta>,
    /// The execution graph.
    pub graph: StepGraph,
    /// What the reader repaired or skipped, in words.
    pub notes: Vec<String>,
    /// Categories of events of accelerators that are not read.
    pub accelerators: Vec<String>,
    /// What was assumed where the step was made from an execution trace alone, in words.
    pub assumed: Vec<String>,
    /// The state of the process to predict; as the recording says, else one that was profiled before. An execution
    /// trace alone is of a training step: fresh.
    pub process: Process,
    /// The arguments of each op, where they were recorded and asked for.
    pub arguments: Arguments,
    /// What tells the recording from all others, where it has times.
    pub fingerprint: Option<Fingerprint>,
    /// The input that it was read from, which may hold other ranks and steps, ...
    pub input: PathBuf,
    /// ... and what was chosen of it.
    pub choice: Choice,
}

impl Step {
    /// What its recorder measured of its host; `None` where it did not.
    pub fn probe(&self) -> Option<Probe> {
        let meta = self.meta.as_ref()?;
        Probe::of_numbers(&meta.host_probe, &meta.pulses)
    }

    /// Opens an input and builds the graph of the chosen rank.
    ///
    /// # Errors
    /// Where the input cannot be read, has no timing, or lacks the rank or step asked for.
    pub fn open(path: &Path, choice: &Choice) -> Result<Step, Error> {
        let mut input = steptime_trace::open_with(
            path,
            &steptime_trace::Options { want: steptime_trace::Want::TIMING, ..Default::default() },
        )?;
        if input.recordings.iter().all(|recording| !is_timed(recording)) {
            input = steptime_trace::open(path)?;
        }
        Step::of_recordings(path, input.recordings, choice)
    }

    /// The same step, read once more with all that its input holds: the arguments of ops too.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub(crate) fn with_arguments(&self) -> Result<Step, Error> {
        let input = steptime_trace::open(&self.input)?;
        let whole = Step::of_recordings(&self.input, input.recordings, &self.choice)?;
        Ok(Step { process: self.process, ..whole })
    }

    /// Takes the chosen rank of recordings already read.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn of_recordings(path: &Path, recordings: Vec<Recording>, choice: &Choice) -> Result<Step, Error> {
        one_job(path, &recordings, choice)?;
        let ranks = recordings.len();
        let known: Vec<Option<u32>> = recordings.iter().map(|r| r.rank).collect();
        let recording = pick(recordings, choice.rank).ok_or_else(|| Error::NoSuchRank {
            path: path.into(),
            wanted: choice.rank.unwrap_or(0),
            known: listed(&known),
        })?;
        let execution = recording.execution.as_ref().map(ExecutionGraph::new);
        // Times of ops that ran on a CPU say nothing of a device: its execution trace does.
        let timed = timing(&recording).filter(|_| execution.is_none() || is_timed(&recording));
        let fingerprint = timed.map(Fingerprint::of);
        let (graph, arguments, notes, assumed) = match (timed, execution) {
            (Some(trace), execution) => {
                let mut graph = StepGraph::build(trace, &Options { step: choice.step })
                    .map_err(|source| Error::Graph { path: recording.path.clone(), source })?;
                if graph.device.as_deref().is_none_or(str::is_empty) {
                    graph.device = recording.meta.as_ref().and_then(|meta| meta.device.clone());
                }
                let arguments = Arguments::of_step(&graph, execution, trace);
                let notes = trace.notes.iter().map(|(what, count)| format!("{what}: {count}")).collect();
                (graph, arguments, notes, Vec::new())
            }
            (None, Some(execution)) => {
                if let Some(step) = choice.step {
                    return Err(Error::OneStep { path: recording.path.clone(), step });
                }
                let (graph, arguments, assumed) = derived(&recording.path, &execution)?;
                (graph, arguments, Vec::new(), assumed)
            }
            (None, None) => return Err(Error::NoTiming { path: recording.path.clone() }),
        };
        let accelerators = timing(&recording).map(unread_accelerators).unwrap_or_default();
        // No profiler runs in a training step that was never on the device.
        let said = recording.meta.as_ref().and_then(|m| m.process.as_deref());
        let fresh = arguments.is_derived() || said == Some("fresh");
        Ok(Step {
            process: if fresh { Process::Fresh } else { Process::Profiled },
            path: recording.path,
            name: recording.name,
            rank: recording.rank,
            ranks,
            meta: recording.meta,
            graph,
            notes,
            accelerators,
            assumed,
            arguments,
            fingerprint,
            input: path.into(),
            choice: *choice,
        })
    }

    /// Checks that something ran on a device, where the step was timed: else there is no step to predict.
    ///
    /// # Errors
    /// Where nothing did, or only on an accelerator that is not read.
    pub fn on_a_device(&self) -> Result<(), Error> {
        if self.arguments.is_derived() || self.graph.coverage.activities > 0 {
            return Ok(());
        }
        Err(Error::NoDeviceActivity { path: self.path.clone(), accelerators: self.accelerators.clone() })
    }

    /// What each op launches, lowered from its arguments, in the order in which it runs.
    #[must_use]
    pub fn launches(&self, indices: &Indices, settings: Settings) -> Vec<Launch> {
        self.arguments.launches(&self.graph, indices, settings)
    }

    /// The measured, un-profiled step time in milliseconds.
    ///
    /// # Errors
    /// Where the recording has none.
    pub fn truth_ms(&self, purpose: &'static str) -> Result<f64, Error> {
        self.meta
            .as_ref()
            .and_then(|meta| meta.step_ms)
            .filter(|ms| ms.is_finite() && *ms > 0.0)
            .ok_or_else(|| Error::NoTruth { path: self.path.clone(), purpose })
    }

    /// Samples in a batch, where known.
    pub fn batch(&self) -> Option<u64> {
        self.meta.as_ref().and_then(|meta| meta.batch)
    }
}

/// The step graph of an execution trace alone, moved to the GPU where it ran on the CPU, and what was assumed.
fn derived(path: &Path, execution: &ExecutionGraph) -> Result<(StepGraph, Arguments, Vec<String>), Error> {
    let mut assumed = Vec::new();
    let tree = if retarget::is_on_cpu(execution) {
        if let Some(region) = retarget::compiled_region(execution) {
            return Err(Error::Compiled { path: path.into(), region: region.to_owned() });
        }
        let moved = retarget::to_cuda(execution);
        let place = if execution.fake { "with tensors that have no memory" } else { "on a CPU" };
        assumed.push(format!(
            "recorded {place}: the ops of CUDA are taken instead, with {} copies of the batch to the device",
            moved.input_copies
        ));
        if !moved.unknown.is_empty() {
            let names = moved.unknown.join(", ");
            assumed.push(format!("what CUDA calls instead is not known of {names}: taken as on the CPU"));
        }
        moved.tree
    } else {
        OpTree::from_execution(execution)
    };
    let derived = derive::of_tree(&tree).map_err(|source| Error::Derive { path: path.into(), source })?;
    Ok((derived.graph, Arguments::derived(derived.kernels), assumed))
}

/// Categories of events of accelerators that the reader leaves out: `mtia_ccp_events`, `xpu_kernel`.
fn unread_accelerators(trace: &Trace) -> Vec<String> {
    let known = ["mtia", "xpu", "hpu", "privateuse1", "npu", "neuron", "tpu"];
    trace
        .notes
        .unknown_categories()
        .map(|(name, _)| name.to_owned())
        .filter(|name| known.iter().any(|prefix| name.to_ascii_lowercase().starts_with(prefix)))
        .collect()
}

/// The trace to take times from: of those that show a device at work the one without shapes, else the one with;
/// where none does, the first there is.
pub fn timing(recording: &Recording) -> Option<&Trace> {
    let mut all = [&recording.timing, &recording.shaped].into_iter().flatten();
    let first = all.clone().next();
    all.find(|trace| !trace.activities.is_empty()).or(first)
}

/// Whether a recording shows a device at work: one made on a CPU has times of the CPU alone.
#[must_use]
pub fn is_timed(recording: &Recording) -> bool {
    timing(recording).is_some_and(|trace| !trace.activities.is_empty())
}

/// Checks that recordings which lie in one folder are the ranks of one job: each says which, and no two the same.
/// Execution traces that belong to none of them do not count.
///
/// # Errors
/// Where they are not, and the choice does not tell them apart.
pub fn one_job(path: &Path, recordings: &[Recording], choice: &Choice) -> Result<(), Error> {
    let any_timed = recordings.iter().any(|recording| timing(recording).is_some());
    let all: Vec<&Recording> =
        recordings.iter().filter(|recording| !any_timed || timing(recording).is_some()).collect();
    let same = |rank: Option<u32>| all.iter().filter(|other| other.rank == rank).count();
    let told_apart = all.iter().all(|recording| recording.rank.is_some() && same(recording.rank) == 1);
    let chosen = choice.rank.is_some_and(|rank| same(Some(rank)) == 1);
    if all.len() < 2 || told_apart || chosen {
        return Ok(());
    }
    let names = all.iter().map(|recording| recording.name.clone()).collect();
    Err(Error::NotOneJob { path: path.into(), names })
}

fn pick(recordings: Vec<Recording>, rank: Option<u32>) -> Option<Recording> {
    match rank {
        None => recordings.into_iter().next(),
        Some(wanted) => {
            let alone = recordings.len() == 1;
            recordings
                .into_iter()
                .find(|r| r.rank == Some(wanted) || (alone && r.rank.is_none() && wanted == 0))
        }
    }
}

fn listed(ranks: &[Option<u32>]) -> String {
    let known: Vec<String> = ranks.iter().flatten().map(u32::to_string).collect();
    if known.is_empty() { "no ranks, only one trace".into() } else { format!("ranks {}", known.join(", ")) }
}
