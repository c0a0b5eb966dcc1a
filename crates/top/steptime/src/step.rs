//! One rank of an input, with its execution graph.

mod choice;
mod parts;

use std::path::{Path, PathBuf};

use steptime_aten::{OpSet, Settings};
use steptime_cost::device::Indices;
use steptime_cost::{Probe, Process};
use steptime_graph::{Modules, StepGraph};
use steptime_trace::{Meta, Options, Origin, Recording, Want};

use self::choice::pick;
pub use self::choice::{Choice, is_timed, one_job, timing};
pub(crate) use self::choice::{listed, title};
use self::parts::Parts;
use crate::device::{Arguments, Launch, Lookups};
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::input::open_input;

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
    /// The profiler that its times are from.
    pub origin: Origin,
    /// The execution graph.
    pub graph: StepGraph,
    /// What the reader repaired or skipped, in words.
    pub notes: Vec<String>,
    /// How many repairs reading took, and the first kind of them; `None` where the input is whole.
    pub repairs: Option<String>,
    /// Where, in bytes, the execution trace ends before its step does, where the step is made of that alone.
    pub cut_at: Option<u64>,
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
    /// The ops that are known.
    pub ops: OpSet,
    /// Whether all that the input holds was read.
    pub(crate) all_read: bool,
}

impl Step {
    /// What its recorder measured of its host; `None` where it did not.
    pub fn probe(&self) -> Option<Probe> {
        let meta = self.meta.as_ref()?;
        Probe::of_numbers(&meta.host_probe, &meta.pulses)
    }

    /// Which module of the model ran which op; no modules where its recorder noted none.
    #[must_use]
    pub fn modules(&self) -> Modules {
        let calls = self.meta.as_ref().map_or(&[][..], |meta| &meta.modules);
        Modules::of(&self.graph, |op| self.arguments.sequence(op), calls)
    }

    /// What to call it: its folder's or file's name, but for files that are all named alike (`et.json.gz`) the model's, else
    /// their folder's.
    #[must_use]
    pub fn title(&self) -> String {
        choice::title(&self.name, &self.path, self.meta.as_ref())
    }

    /// Opens an input and builds the graph of the chosen rank.
    ///
    /// # Errors
    /// Where the input cannot be read, has no timing, or lacks the rank or step asked for.
    pub fn open(path: &Path, choice: &Choice) -> Result<Step, Error> {
        Step::open_with(path, choice, &Options { want: Want::TIMING, ..Options::default() })
    }

    /// The same, read so. What is wanted is read; where that shows no device at work, all that there is.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn open_with(path: &Path, choice: &Choice, options: &Options<'_>) -> Result<Step, Error> {
        Step::read(path, choice, options, &OpSet::standard())
    }

    /// The same, of a step whose ops mean what a set says: the standard one with ops of your own.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn open_with_ops(path: &Path, choice: &Choice, ops: &OpSet) -> Result<Step, Error> {
        Step::read(path, choice, &Options { want: Want::TIMING, ..Options::default() }, ops)
    }

    fn read(path: &Path, choice: &Choice, options: &Options<'_>, ops: &OpSet) -> Result<Step, Error> {
        let mut all = options.want == Want::ALL;
        let mut input = open_input(path, options)?;
        if !all && !input.recordings.iter().any(is_timed) {
            all = true;
            input = open_input(path, &Options { want: Want::ALL, ..*options })?;
        }
        Ok(Step { all_read: all, ..Step::of_parts(path, input.recordings, choice, ops)? })
    }

    /// The same step, read once more with all that its input holds: the arguments of ops too.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub(crate) fn with_arguments(&self) -> Result<Step, Error> {
        let whole = Step::read(&self.input, &self.choice, &Options::default(), &self.ops)?;
        Ok(Step { process: self.process, ..whole })
    }

    /// Takes the chosen rank of recordings already read.
    ///
    /// # Errors
    /// As [`Step::open`].
    pub fn of_recordings(path: &Path, recordings: Vec<Recording>, choice: &Choice) -> Result<Step, Error> {
        Step::of_parts(path, recordings, choice, &OpSet::standard())
    }

    fn of_parts(
        path: &Path,
        recordings: Vec<Recording>,
        choice: &Choice,
        ops: &OpSet,
    ) -> Result<Step, Error> {
        one_job(path, &recordings, choice)?;
        let ranks = recordings.len();
        let known: Vec<Option<u32>> = recordings.iter().map(|r| r.rank).collect();
        let recording = pick(recordings, choice.rank).ok_or_else(|| Error::NoSuchRank {
            path: path.into(),
            wanted: choice.rank.unwrap_or(0),
            known: listed(&known),
        })?;
        Step::of_recording(path, recording, ranks, choice, ops)
    }

    /// Makes a step of one recording of an input that holds so many.
    pub(crate) fn of_recording(
        path: &Path,
        recording: Recording,
        ranks: usize,
        choice: &Choice,
        ops: &OpSet,
    ) -> Result<Step, Error> {
        let repairs = parts::repairs(&recording);
        let damaged = |error| damaged(repairs.as_deref(), error);
        let Parts { graph, arguments, notes, assumed } =
            Parts::of(&recording, choice, ops).map_err(damaged)?;
        let noted = recording.meta.as_ref().map_or(&[][..], |meta| meta.lookups.as_slice());
        let kept = recording.meta.as_ref().map_or_else(Vec::new, |meta| meta.outlives.clone());
        let arguments = arguments.with_lookups(Lookups::new(noted)).with_kept(kept);
        let fingerprint = parts::timed(&recording).map(Fingerprint::of);
        let cut_at = arguments.is_derived().then(|| parts::cut_at(&recording)).flatten();
        let origin = timing(&recording).map_or(Origin::Kineto, |trace| trace.origin);
        let accelerators = timing(&recording).map(parts::unread_accelerators).unwrap_or_default();
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
            choice: *choice,
            ops: ops.clone(),
            all_read: false,
        })
    }

    /// A rank of a job that does what rules made of this step: nothing of it was timed as it is.
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
            choice: self.choice,
            ops: self.ops.clone(),
            all_read: true,
        }
    }

    /// Checks that something ran on a device, where the step was timed: else there is no step to predict.
    ///
    /// # Errors
    /// Where nothing did, or only on an accelerator that is not read.
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

    /// What each op launches, lowered from its arguments, in the order in which it runs.
    #[must_use]
    pub fn launches(&self, indices: &Indices, settings: Settings) -> Vec<Launch> {
        self.arguments.launches(&self.graph, indices, self.settings(settings), &self.ops)
    }

    /// The settings that are asked for, or those that its recorder found.
    #[must_use]
    pub fn settings(&self, asked: Settings) -> Settings {
        Settings { matmul_tf32: asked.matmul_tf32 || self.matmul_tf32() == Some(true), ..asked }
    }

    /// Whether float32 matrix products might run in TF32; `None` where its recorder did not say.
    #[must_use]
    pub fn matmul_tf32(&self) -> Option<bool> {
        self.meta.as_ref().and_then(|meta| meta.matmul_tf32)
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

/// What went wrong, after what was repaired: of a file that was cut, the part that is missing may be the reason.
fn damaged(repairs: Option<&str>, error: Error) -> Error {
    match repairs {
        None => error,
        Some(repairs) => Error::Damaged { repairs: repairs.to_owned(), source: Box::new(error) },
    }
}
