//! Predictions of training steps: how long a step takes, why, and what would make it shorter.
//!
//! ```text
//! recording ──steptime_trace──> columns ──steptime_graph──> StepGraph ──steptime_aten──> kernel calls
//!     ──steptime_cost──> PricedGraph ──steptime_sim──> Timeline ──> Prediction
//! ```
//!
//! [`open`] reads an input, [`Step::predict`] makes a [`Query`] of it. `whatif` changes a step by rules, `choose` searches batches and
//! GPUs, `job` simulates several ranks, `shard` places tables on GPUs. The crate prints nothing: `steptime-answers` makes plain
//! data of its results, and the crate `steptime` is the public library.
#![forbid(unsafe_code)]

mod architecture;
mod choose;
mod doubt;
mod error;
mod explain;
mod fingerprint;
mod fit;
pub mod format;
mod grid;
mod input;
pub mod job;
mod memory;
mod plausibility;
mod predict;
pub mod pricing;
mod query;
mod query_echo;
mod replay;
mod scale;
mod score;
pub mod shard;
mod shipped_host;
pub mod step;
mod time_sources;
pub mod uncertainty;
mod validate;
mod whatif;

pub use architecture::architectures;
pub use choose::{Fit, GpuChoice, GpuPoints, LargestBatch, Limit, OperatingPoint, Prices, Ratio, Remedy};
pub use doubt::{Doubt, replay_doubt, without_model};
pub use error::Error;
pub use explain::{Explanation, Suggestion};
pub use fingerprint::Fingerprint;
pub use fit::{HostFit, fit_host_profile};
pub use grid::{GridAnswer, GridPoint, grid};
pub use input::{described_input, open_input};
pub use job::{
    CollectiveMeeting, HostResidentTables, JobGraphs, JobPrediction, JobRecording, KeptState, LateCause,
    MeasuredRank, RankPrediction, RankSet, Reason, SlowestHost, Spread, Straggler, World,
};
pub use predict::{Baseline, INTERVAL_LEVEL, Prediction, baseline, predict};
pub use pricing::{PricedLaunches, device, devices};
pub use query::{KernelRoof, NamedKernel, NamedKernels, Query, QueryFor, Roofline, WhatIfs, open, read_host};
pub use query_echo::{DeviceEcho, HostSlowdown, QueryEcho};
pub use replay::SelfCheck;
pub use scale::{GpuCount, StepOnGpus};
pub use score::Score;
pub use shipped_host::{default_host, own_constants};
pub use step::{Choice, Step, is_timed, observations, one_job, timing};
pub use time_sources::{Host, Kernels};
pub use uncertainty::uncertainty;
pub use validate::{Basis, HostMode, Row, Validation, validate};
pub use whatif::{Change, Changes, Fuse, ModifiedStep, OperatorLibrary, Outcome, Precision, WhatIf};
