//! What can go wrong, in words for the user.

use std::path::PathBuf;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input could not be read.
    #[error(transparent)]
    Trace(#[from] steptime_trace::Error),
    /// No execution graph could be built from it.
    #[error("{}: {source}", path.display())]
    Graph {
        /// The input.
        path: PathBuf,
        /// The reason.
        source: steptime_graph::Error,
    },
    /// No step graph could be derived from an execution trace.
    #[error("{}: {source}", path.display())]
    Derive {
        /// The input.
        path: PathBuf,
        /// The reason.
        source: steptime_aten::derive::Error,
    },
    /// A device profile could not be read, fitted or written.
    #[error(transparent)]
    Device(#[from] steptime_cost::device::Error),
    /// A profile could not be read or fitted.
    #[error(transparent)]
    Cost(#[from] steptime_cost::Error),
    /// The input has no timing of the host, and no device was named to price it for.
    #[error(
        "{}: an execution trace alone holds no times: name a device to price it for (--device h200), or give \
         the Kineto trace of the same step (a recording folder)", path.display()
    )]
    NoTiming {
        /// The input.
        path: PathBuf,
    },
    /// A step was asked for of an execution trace, which is of one.
    #[error("{}: no step {step}: an execution trace alone is of one step and does not number it", path.display())]
    OneStep {
        /// The input.
        path: PathBuf,
        /// The step asked for.
        step: u32,
    },
    /// An execution trace where measured times are needed.
    #[error("{}: an execution trace alone holds no times to compare with: give the recording's folder", path.display())]
    NothingMeasured {
        /// The input.
        path: PathBuf,
    },
    /// A device was named that has no profile.
    #[error("no device profile {name:?}: the shipped ones are {known}; `steptime device fit` makes others")]
    NoSuchDevice {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A rank was asked for that is not there.
    #[error("{}: no rank {wanted}; there are {known}", path.display())]
    NoSuchRank {
        /// The input.
        path: PathBuf,
        /// The rank asked for.
        wanted: u32,
        /// The ranks there are.
        known: String,
    },
    /// A recording without the measured step time that this command compares with.
    #[error("{}: no `step_ms` in meta.json: only a recording with its un-profiled step time can be {purpose}", path.display())]
    NoTruth {
        /// The recording.
        path: PathBuf,
        /// What it was wanted for.
        purpose: &'static str,
    },
    /// Leave-one-out needs recordings of at least two models.
    #[error("leave-one-out needs recordings of at least two models, and all of these are of {family}")]
    OneModel {
        /// The one family.
        family: String,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
}
