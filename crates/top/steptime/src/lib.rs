//! steptime tells how long a training step takes, why, and what would make it shorter.
//!
//! ```text
//! recording ──steptime_trace──> columns ──steptime_graph──> StepGraph ──steptime_aten──> kernel calls
//!     ──steptime_cost──> PricedGraph ──steptime_sim──> Timeline ──> Prediction
//! ```
//!
//! This crate is the front door: [`Subject`] is one rank of an input with its execution graph, [`predict()`]
//! says how long its step takes, [`validate()`] compares predictions with what was measured,
//! [`fit_host_profile`] makes a host profile, and [`device()`] finds a device profile to price kernels with.
//!
//! ```no_run
//! use steptime::{Host, Kernels, Method, Subject};
//!
//! let subject = Subject::open("examples/dlrm_default_2048".as_ref(), &Default::default())?;
//! let prediction = steptime::predict(&subject, &Host::Own, &Kernels::Measured, Method::Simulate);
//! println!("{} per step", prediction.step);
//! # Ok::<(), steptime::Error>(())
//! ```
#![forbid(unsafe_code)]

mod architecture;
pub mod device;
mod doubt;
mod error;
mod fingerprint;
mod fit;
mod predict;
mod replay;
mod subject;
mod validate;

pub use architecture::architectures;
pub use device::{device, devices};
pub use doubt::{Doubt, REPLAY_SAID, of_replay};
pub use error::Error;
pub use fingerprint::Fingerprint;
pub use fit::{Fitted, fit_host_profile};
pub use predict::{
    Host, INTERVAL_LEVEL, Kernels, Method, Prediction, PricedLaunches, Simulated, default_host, predict,
};
pub use replay::SelfCheck;
pub use subject::{Choice, Subject, is_timed, one_job, timing};
pub use validate::{Basis, HostMode, Row, Score, Validation, validate};

pub use steptime_aten as aten;
pub use steptime_cost as cost;
pub use steptime_cost::Process;
#[cfg(feature = "cuda")]
pub use steptime_cuda as cuda;
pub use steptime_graph as graph;
#[cfg(feature = "ops")]
pub use steptime_ops as ops;
pub use steptime_sim as sim;
pub use steptime_sweep as sweep;
#[cfg(feature = "ops")]
pub use steptime_tensor as tensor;
pub use steptime_trace as trace;
