//! steptime predicts how long a training step takes, explains why, and suggests what would make it shorter.
//!
//! [`open`] reads an input, [`Step::predict`] predicts how long its step takes:
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
//! a device profile to price kernels with. [`answers`] makes plain data of every result, the content of `--json`.
//!
//! The crates below are used by name: `steptime-trace` reads formats, `steptime-graph` has the execution graph, `steptime-step`
//! the step that can be changed, `steptime-rewrite` its rules, `steptime-cost` the profiles, `steptime-sim` the simulator. The
//! operators are behind the features `ops` and `cuda`.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub use steptime_answers as answers;
pub use steptime_cost::Process;
#[cfg(feature = "cuda")]
pub use steptime_cuda as cuda;
pub use steptime_eager::{Cache, Model, Sharding, TableLayout, TableShard, TableSize};
#[cfg(feature = "ops")]
pub use steptime_ops as ops;
pub use steptime_predict::{
    Change, Changes, Choice, Doubt, Error, Explanation, Fuse, GpuChoice, GpuPoints, Host, HostFit, HostMode,
    INTERVAL_LEVEL, JobPrediction, JobRecording, Kernels, LargestBatch, Limit, ModifiedStep, NamedKernels,
    OperatingPoint, OperatorLibrary, Outcome, Precision, Prediction, Prices, Query, RankPrediction, RankSet,
    Remedy, Roofline, Row, Score, SelfCheck, Step, Straggler, Suggestion, Validation, WhatIf, WhatIfs, World,
    architectures, baseline, default_host, device, devices, fit_host_profile, open, predict, read_host,
    validate,
};
#[cfg(feature = "ops")]
pub use steptime_tensor as tensor;
