//! steptime predicts how long a training step takes, explains why, and suggests what would make it shorter.
//!
//! ```text
//! recording ──steptime_trace──> columns ──steptime_graph──> StepGraph ──steptime_aten──> kernel calls
//!     ──steptime_cost──> PricedGraph ──steptime_sim──> Timeline ──> Prediction
//! ```
//!
//! This crate is the facade. [`open`] reads an input, [`Step::predict`] predicts how long its step takes:
//!
//! ```
//! # fn main() -> Result<(), steptime::Error> {
//! # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
//! let step = steptime::open(format!("{examples}/dlrm_default_2048"))?;
//! let here = step.predict().run()?; // as recorded, the profiler's cost taken off
//! let there = step.predict().on("a100")?.run()?; // the same step on another GPU
//! println!("{} here, {} there", here.step, there.step);
//! # assert!(there.active > here.active);
//! # Ok(())
//! # }
//! ```
//!
//! [`validate()`] compares predictions with measurements, [`fit_host_profile`] makes a host profile, [`device()`] finds
//! a device profile to price kernels with. The operators are behind the features `ops` and `cuda`.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod answers;
mod architecture;
mod choose;
pub mod device;
mod doubt;
mod echo;
mod error;
mod explain;
mod fingerprint;
mod fit;
mod grid;
mod input;
mod job;
mod memory;
mod possible;
mod predict;
mod query;
mod replay;
mod scale;
mod score;
pub mod shard;
mod shipped_host;
mod sources;
mod step;
mod validate;
mod whatif;
pub mod words;

pub use architecture::architectures;
pub use choose::{Fit, GpuChoice, GpuPoints, LargestBatch, Limit, OperatingPoint, Prices, Ratio, Remedy};
pub use device::{PricedLaunches, device, devices};
pub use doubt::{Doubt, REPLAY_SAID, replay_doubt};
pub use echo::{DeviceEcho, HostSlowdown, QueryEcho};
pub use error::Error;
pub use explain::{Explanation, Suggestion};
pub use fingerprint::Fingerprint;
pub use fit::{HostFit, fit_host_profile};
pub use grid::{GridAnswer, GridPoint, grid};
pub use input::open_input;
pub use job::{
    CollectiveMeeting, HostTables, JobGraphs, JobPrediction, JobRecording, KeptState, LateCause,
    RankPrediction, RankRecording, RankSet, Reason, SlowestHost, Spread, Straggler, World,
};
pub use predict::{Baseline, INTERVAL_LEVEL, Prediction, baseline, predict};
pub use query::{KernelRoof, NamedKernel, NamedKernels, Query, QueryFor, Roofline, WhatIfs, open, read_host};
pub use replay::SelfCheck;
pub use scale::{GpuCount, StepOnGpus};
pub use score::Score;
pub use shipped_host::default_host;
pub use sources::{Host, Kernels};
pub use step::{Choice, Step, is_timed, observations, one_job, timing};
pub use steptime_eager::{Cache, Home, Model, Part, Sharding, TableSize};
pub use validate::{Basis, HostMode, Row, Validation, validate};
pub use whatif::{Change, Changes, Fuse, ModifiedStep, OperatorLibrary, Outcome, Precision, WhatIf};

pub use steptime_aten as aten;
pub use steptime_cost as cost;
pub use steptime_cost::Process;
#[cfg(feature = "cuda")]
pub use steptime_cuda as cuda;
pub use steptime_eager as eager;
pub use steptime_fleet as fleet;
pub use steptime_graph as graph;
pub use steptime_launch as launch;
#[cfg(feature = "ops")]
pub use steptime_ops as ops;
pub use steptime_rewrite as rewrite;
pub use steptime_sim as sim;
pub use steptime_step as edit;
pub use steptime_sweep as sweep;
#[cfg(feature = "ops")]
pub use steptime_tensor as tensor;
pub use steptime_trace as trace;
