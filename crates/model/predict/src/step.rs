//! One rank of an input, with its execution graph.

mod choice;
mod observations;
mod parts;

use std::path::{Path, PathBuf};

use steptime_aten::{OpSet, Settings};
use steptime_cost::device::Indices;
use steptime_cost::{Probe, Process};
use steptime_graph::{Modules, StepGraph};
use steptime_trace::{Input, Meta, Options, Origin, Recording, Want};

use self::choice::pick;
pub use self::choice::{Choice, is_timed, one_job, timing};
pub use self::choice::{listed, title};
pub use self::observations::observations;
use self::parts::Parts;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::input::open_input;
use crate::pricing::{Arguments, Launch, Lookups};

/// A recording, or one rank of several, ready to be predicted.
#[derive(Debug)]
pub struct Step {
    /// Path of the recording.
    pub path: PathBuf,
    /// Its name: the folder's or the file's.
    pub name: String,
    /// Its rank, where known.
    pub rank: Option<u32>,
    /// Number of ranks of the input.
    pub ranks: usize,
    /// Model, batch and measured times, as written by the recorder. Predictions do not read its times.
    pub meta: Option<Meta>,
    /// The profiler that recorded the times.
    pub origin: Origin,
    /// The execution graph.
    pub graph: StepGraph,
    /// Repairs and omissions of the reader, in words.
    pub notes: Vec<String>,
    /// Number of repairs while reading, and the first kind of them; `None` where the input is intact.
    pub repairs: Option<String>,
    /// Position in bytes at which the execution trace ends before its step does, for a step made from that trace alone.
    pub cut_at: Option<u64>,
    /// Categories of accelerator events that are not read.
    pub accelerators: Vec<String>,
    /// Assumptions where the step was made from an execution trace alone, in words.
    pub assumed: Vec<String>,
    /// The state of the predicted process: as the recording says, else a process that was profiled before. An execution
    /// trace alone is of a training step: fresh.
    pub process: Process,
    /// The arguments of each op, where recorded and read.
    pub arguments: Arguments,
    /// Identity of the recording, where it has times.
    pub fingerprint: Option<Fingerprint>,
    /// The input that it was read from, which may have other ranks and steps.
    pub input: PathBuf,
    /// The known ops.
    pub ops: OpSet,
}

impl Step {
    /// Returns the recorder's measurements of its host; `None` where there are none.
    pub fn probe(&self) -> Option<Probe> {
        let meta = self.meta.as_ref()?;
        Probe::from_numbers(&meta.host_probe, &meta.pulses)
    }

    /// Maps ops to modules of the model; empty where the recorder noted none.
    #[must_use]
    pub fn modules(&self) -> Modules {
        let calls = self.meta.as_ref().map_or(&[][..], |meta| &meta.modules);
        Modules::build(&self.graph, |op| self.arguments.sequence(op), calls)
    }

    /// Title: the folder's or file's name; for files with a generic name (`et.json.gz`), the model's name, else
    /// that of their folder.
    #[must_use]
    pub fn title(&self) -> String {
        choice::title(&self.name, &self.path, self.meta.as_ref())
    }

    /// Opens an input, with its times and ops, and builds the graph of the chosen rank.
    ///
    /// # Errors
    /// Fails where the input cannot be read, has no timing, or lacks the selected rank or step.
    pub fn open(path: &Path, choice: &Choice) -> Result<Step, Error> {
        Step::open_with(path, choice, &Options { want: Want::STEP, ..Options::default() })
    }

    /// Opens an input with these options. Parts that they leave out are not read later: without ops, a step can neither be
    /// changed nor predicted for another GPU.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn open_with(path: &Path, choice: &Choice, options: &Options<'_>) -> Result<Step, Error> {
        Step::choose(&mut open_input(path, options)?, choice, options, &OpSet::standard())
    }

    /// Opens an input with this set of ops: the standard set with ops of your own.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn open_with_ops(path: &Path, choice: &Choice, ops: &OpSet) -> Result<Step, Error> {
        let options = Options { want: Want::STEP, ..Options::default() };
        Step::choose(&mut open_input(path, &options)?, choice, &options, ops)
    }

    /// Selects a rank of an opened input. Where the parts that were read show no device activity of it, the rest of the input
    /// is read too.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn from_input(input: &mut Input, choice: &Choice, options: &Options<'_>) -> Result<Step, Error> {
        Step::choose(input, choice, options, &OpSet::standard())
    }

    fn choose(input: &mut Input, choice: &Choice, options: &Options<'_>, ops: &OpSet) -> Result<Step, Error> {
        if !pick(&input.recordings, choice.rank).is_some_and(is_timed) {
            input.read_rest(&Options { want: Want::ALL, ..*options })?;
        }
        Step::select(&input.path, &input.recordings, choice, ops)
    }

    /// Selects a rank of recordings that were already read.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn from_recordings(path: &Path, recordings: &[Recording], choice: &Choice) -> Result<Step, Error> {
        Step::select(path, recordings, choice, &OpSet::standard())
    }

    fn select(path: &Path, recordings: &[Recording], choice: &Choice, ops: &OpSet) -> Result<Step, Error> {
        one_job(path, recordings, choice)?;
        let ranks = recordings.len();
        let known: Vec<Option<u32>> = recordings.iter().map(|r| r.rank).collect();
        let recording = pick(recordings, choice.rank).ok_or_else(|| Error::NoSuchRank {
            path: path.into(),
            wanted: choice.rank.unwrap_or(0),
            known: listed(&known),
        })?;
        Step::from_recording(path, recording, ranks, choice, ops)
    }

    /// Makes a step of one recording of an input with `ranks` recordings.
    pub(crate) fn from_recording(
        path: &Path,
        recording: &Recording,
        ranks: usize,
        choice: &Choice,
        ops: &OpSet,
    ) -> Result<Step, Error> {
        let repairs = parts::repairs(recording);
        let damaged = |error| damaged(repairs.as_deref(), error);
        let Parts { graph, arguments, notes, assumed } =
            Parts::read(recording, choice, ops).map_err(damaged)?;
        let noted = recording.meta.as_ref().map_or(&[][..], |meta| meta.lookups.as_slice());
        let kept = recording.meta.as_ref().map_or_else(Vec::new, |meta| meta.outlives.clone());
        let arguments = arguments.with_lookups(Lookups::new(noted)).with_kept(kept);
        let fingerprint = parts::timed(recording).map(Fingerprint::from_trace);
        let cut_at = arguments.is_derived().then(|| parts::cut_at(recording)).flatten();
        let origin = timing(recording).map_or(Origin::Kineto, |trace| trace.origin);
        let accelerators = timing(recording).map(parts::unread_accelerators).unwrap_or_default();
        // A training step that was never on the device is not run under a profiler, nor is that of `steptime-train`.
        let said = recording.meta.as_ref().and_then(|m| m.process.as_deref());
        let fresh = arguments.is_derived() || origin == Origin::Train || said == Some("fresh");
        Ok(Step {
            process: if fresh { Process::Fresh } else { Process::Profiled },
            path: recording.path.clone(),
            name: recording.name.clone(),
            rank: recording.rank,
            ranks,
            meta: recording.meta.clone(),
            origin,
            graph,
            notes,
            repairs,
            cut_at,
            accelerators,
            assumed,
            arguments,
            fingerprint,
            input: path.into(),
            ops: ops.clone(),
        })
    }

    /// Makes a rank of a job from the changed step: none of it was timed.
    pub(crate) fn as_rank(&self, rank: u32, ranks: u32, graph: StepGraph, meta: Meta) -> Step {
        Step {
            path: self.path.clone(),
            name: self.name.clone(),
            rank: Some(rank),
            ranks: ranks as usize,
            meta: Some(meta),
            origin: self.origin,
            graph,
            notes: Vec::new(),
            repairs: None,
            cut_at: None,
            accelerators: Vec::new(),
            assumed: self.assumed.clone(),
            process: self.process,
            arguments: Arguments::default(),
            fingerprint: None,
            input: self.input.clone(),
            ops: self.ops.clone(),
        }
    }

    /// Whether it was timed on a CPU by `steptime-train`: its ops do their work on the host, and no device is missing.
    #[must_use]
    pub fn ran_on_cpu(&self) -> bool {
        self.origin == Origin::Train && !self.arguments.is_derived() && self.graph.coverage.activities == 0
    }

    /// Name of the device that it was recorded on, where it is known.
    #[must_use]
    pub fn device_name(&self) -> Option<String> {
        let cpu = || self.ran_on_cpu().then(|| "a CPU".to_owned());
        self.graph.device.clone().or_else(cpu)
    }

    /// Checks that a timed step has device activity: without it there is nothing to predict.
    ///
    /// # Errors
    /// Fails where there is none, or only on an accelerator that is not read.
    pub fn on_a_device(&self) -> Result<(), Error> {
        let coverage = &self.graph.coverage;
        if self.arguments.is_derived() || coverage.activities_in_steps > 0 {
            return Ok(());
        }
        let (path, accelerators) = (self.path.clone(), self.accelerators.clone());
        let none = match coverage.activities {
            0 => Error::NoDeviceActivity { path, accelerators },
            activities => Error::NothingLaunched { path, activities, linked: coverage.activities_linked },
        };
        Err(damaged(self.repairs.as_deref(), none))
    }

    /// Launches of each op, lowered from its arguments, in order of execution.
    #[must_use]
    pub fn launches(&self, indices: &Indices, settings: Settings) -> Vec<Launch> {
        self.arguments.launches(&self.graph, indices, self.settings(settings), &self.ops)
    }

    /// The given settings, with those that the recorder found.
    #[must_use]
    pub fn settings(&self, asked: Settings) -> Settings {
        Settings { matmul_tf32: asked.matmul_tf32 || self.matmul_tf32() == Some(true), ..asked }
    }

    /// Whether float32 matrix products may run in TF32; `None` where the recorder did not say.
    #[must_use]
    pub fn matmul_tf32(&self) -> Option<bool> {
        self.meta.as_ref().and_then(|meta| meta.matmul_tf32)
    }

    /// The measured, un-profiled step time in milliseconds.
    ///
    /// # Errors
    /// Fails where the recording has none.
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

/// Adds the repairs to an error: in a cut file, the missing part may be the cause.
fn damaged(repairs: Option<&str>, error: Error) -> Error {
    match repairs {
        None => error,
        Some(repairs) => Error::Damaged { repairs: repairs.to_owned(), source: Box::new(error) },
    }
}
