//! Recordings of measured steps, in the format of PyTorch's profiler (`--record`, `--timeline`).

mod device;
mod events;
mod inputs;
mod output;
mod scopes;
#[cfg(test)]
mod tests;
mod writer;

use std::num::NonZero;
use std::path::Path;
use std::time::{Duration, Instant};

use steptime_runtime::{Program, Region, StepTimes};
use steptime_step::StepIr;

use self::device::DeviceProperties;
use self::inputs::Inputs;
use self::output::Output;
use self::scopes::{Scope, scopes};
use crate::Failure;
use crate::arguments::Train;
use crate::error::Error;
use crate::processor::Processor;

/// The ops of a program, as they are recorded.
#[derive(Debug)]
pub struct RecordedOps {
    ops: Vec<RecordedOp>,
    /// Functions and annotations around the ops.
    scopes: Vec<Scope>,
    /// Bytes of the inputs of a step.
    input_bytes: usize,
}

/// An op that runs as a whole.
#[derive(Debug)]
struct RecordedOp {
    name: String,
    inputs: Inputs,
}

impl RecordedOps {
    /// The ops of a program that was compiled from a step.
    pub fn new(step: &StepIr, program: &Program) -> RecordedOps {
        let all = program.instructions();
        let ops = all.iter().map(|instruction| RecordedOp {
            name: instruction.name.clone(),
            inputs: Inputs::new(step, instruction),
        });
        RecordedOps {
            ops: ops.collect(),
            scopes: scopes(step, all),
            input_bytes: program.plan().bytes(Region::Inputs),
        }
    }
}

/// A measured step of a run.
#[derive(Debug)]
pub struct RecordedStep {
    /// Number of the step, from 1.
    pub number: u64,
    /// Begin of the wait for its batch.
    pub begin: Instant,
    /// Time of the wait for its batch.
    pub waiting: Duration,
    /// Begin and end of the copy of the batch to the inputs.
    pub copy: [Instant; 2],
    /// Times of its ops.
    pub times: StepTimes,
}

/// The files of a run with its last steps, and those steps.
#[derive(Debug)]
pub struct Recording {
    files: Vec<(Output, u64)>,
    device: Option<DeviceProperties>,
    ops: RecordedOps,
    steps: Vec<RecordedStep>,
}

impl Recording {
    /// The recording that a command line requests; `None` where it requests none. Its files are opened aside.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn open(
        args: &Train,
        processor: &Processor,
        step: &StepIr,
        program: &Program,
    ) -> Result<Option<Recording>, Failure> {
        let named =
            |path: Option<&Path>, steps: NonZero<u64>| path.map(|path| (path.to_owned(), steps.get()));
        let record = named(args.record.as_deref(), args.record_steps);
        let timeline = named(args.timeline.as_deref(), args.timeline_steps);
        if record.as_ref().zip(timeline.as_ref()).is_some_and(|(one, other)| one.0 == other.0) {
            let reason = "--record and --timeline name one file: give each its own";
            return Err(Error::Options(reason.to_owned()).into());
        }
        let open = |(path, steps): (std::path::PathBuf, u64)| Ok((Output::create(&path)?, steps));
        let files = record.into_iter().chain(timeline).map(open).collect::<Result<Vec<_>, Error>>()?;
        if files.is_empty() {
            return Ok(None);
        }
        let device = match processor {
            Processor::Cpu => None,
            Processor::Gpu(device, _) => Some(DeviceProperties::new(device)?),
        };
        Ok(Some(Recording { files, device, ops: RecordedOps::new(step, program), steps: Vec::new() }))
    }

    /// Number of the last steps of the run that are measured.
    pub fn last(&self) -> u64 {
        self.files.iter().map(|(_, steps)| *steps).max().unwrap_or(0)
    }

    /// Adds a measured step.
    pub fn add(&mut self, step: RecordedStep) {
        self.steps.push(step);
    }

    /// Writes the files, each with its number of last steps, and gives them their names.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn write(self) -> Result<(), Error> {
        for (mut output, steps) in self.files {
            let first = self.steps.len().saturating_sub(usize::try_from(steps).unwrap_or(usize::MAX));
            let written = writer::write(&mut output, &self.ops, &self.steps[first..], self.device.as_ref());
            written.map_err(|source| output.error(source))?;
            output.finish()?;
        }
        Ok(())
    }
}
