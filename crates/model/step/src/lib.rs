//! One training step as a graph that can be changed.
//!
//! ```text
//! StepGraph + calls of its ops + execution trace ──StepIr::from_graph──> StepIr ──apply(Patch)──> StepIr ──schedule──> StepGraph + Carried
//! ```
//!
//! A [`StepIr`] has nested [`Op`]s, and [`Tensor`]s with an identity. A [`Patch`] changes it; [`StepIr::apply`] checks the result. [`schedule()`]
//! converts it back to marks, calls and activities: recorded and unchanged rows carry over, the others are derived from the launches of ops.
#![forbid(unsafe_code)]

mod call;
mod capture;
mod diff;
mod draft;
mod error;
mod exchange;
mod exchange_bytes;
pub mod exchange_order;
pub mod export;
mod from_recording;
mod ids;
mod insert;
mod memory;
mod node_order;
mod nodes;
mod patch;
mod schedule;
mod shared_call;
mod step;
mod tensors;
mod uses;
mod verify;

pub use call::Call;
pub use capture::captured;
pub use diff::{Change, Diff};
pub use draft::Draft;
pub use error::Error;
pub use exchange::Exchange;
pub use ids::{OpId, TensorId};
pub use insert::NewOp;
pub use memory::{Kind as MemoryKind, Moment, Peak, over as memory_over};
pub use node_order::{NodeOrder, UsedBytes};
pub use patch::{Patch, Place};
pub use schedule::{ReusedRows, ScheduledStep, schedule};
pub use shared_call::SharedCall;
pub use step::{Op, Origin, StepIr, StreamWait};
pub use tensors::{LifetimeEnd, Tensor};
pub use uses::Uses;
