//! Step graph of a training step: one template step, and the samples measured for each of its parts.
//!
//! ```text
//! trace: ops, calls, activities ──nest, join, align──> StepGraph { rows of one step, columns of samples }
//! ```
//!
//! A [`StepGraph`] has the events of a step ([`Op`], [`Call`], [`Activity`]), their order ([`Mark`]: every event on a host thread
//! is the beginning or the end of an op or a call), their dependencies
//! ([`Mark::after`], [`Blocking`], [`StreamDependency`]), and their times ([`Samples`]): each part of the
//! template has one sample per step. Later stages do not read the trace again.
#![forbid(unsafe_code)]

mod align;
mod blocking;
mod collectives;
mod coverage;
mod device_bound_period;
mod error;
mod events;
pub mod execution;
mod graph;
mod handoff;
mod ids;
mod independent_check;
mod inferred_waits;
mod job;
mod launch_links;
mod lost_kernels;
mod marks;
mod medoid;
mod modules;
pub mod names;
mod nesting_limit;
mod order;
mod phase;
mod queue_delay;
mod rows;
mod samples;
mod steps;
mod tables;
mod template;

pub use collectives::{Collective, Group};
pub use coverage::Coverage;
pub use device_bound_period::is_timed_by_device;
pub use error::Error;
pub use graph::{StepGraph, tops};
pub use ids::{
    ActivityId, CallId, CollectiveId, HostThreadId, MarkId, OpId, RendezvousId, StepId, TraceActivity,
    TraceCall, TraceOp,
};
pub use independent_check::IndependentCheck;
pub use job::{Arrival, Job, Member, Mismatch, Rendezvous, RendezvousTimes};
pub use launch_links::launching_calls;
pub use lost_kernels::{Launch, kernel_launches};
pub use modules::{Module, ModuleId, Modules};
pub use names::{ApiKind, CollectiveKind};
pub use nesting_limit::{DEEPEST, check_nesting};
pub use samples::{Clock, Samples, median, union};
pub use steps::{StepSource, StepWindow, step_windows};
pub use steptime_trace::StreamId;
pub use tables::{
    Activity, Blocking, Call, Mark, MarkKind, Op, OpOrigin, Phase, Role, StreamDependency, StreamSet, Thread,
};
pub use template::Options;
pub use typed_index_collections::{TiSlice, TiVec};
