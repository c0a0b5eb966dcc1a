//! Kineto's Chrome-trace JSON: host and device events with their times.

mod activities;
mod builder;
mod calls;
mod category;
mod device;
mod event;
mod flows;
mod ids;
mod inputs;
mod merge;
mod ops;
mod overlaps;
mod parallel;
mod processes;
mod syncs;
mod trace;
mod uncategorized;
mod xla;

pub use activities::{
    Activities, Activity, ActivityKind, ActivityRows, GpuAnnotation, GpuAnnotations, LaunchShape,
};
pub use calls::{Call, CallLibrary, Calls};
pub use device::DeviceProperties;
pub use ids::{StreamId, ThreadId};
pub use inputs::{OpInput, OpInputs};
pub use ops::{HostInterval, HostIntervals, HostKind, HostOp, HostOps};
pub use syncs::{SyncEvent, SyncKind, Syncs};
pub use trace::{Stream, Thread, Trace};

pub(crate) use crate::other_profilers::Origin;
pub(crate) use builder::Builder;
pub(crate) use category::Category;
pub(crate) use parallel::read_events;
#[cfg(test)]
pub(crate) use parallel::{read_pieces, split};
