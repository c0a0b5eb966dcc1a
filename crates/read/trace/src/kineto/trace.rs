//! The whole of one Kineto file.

use super::{Activities, Calls, DeviceProperties, GpuAnnotations, HostIntervals, HostOps, OpInputs, Syncs};
use crate::collective::Collective;
use crate::distributed::Distributed;
use crate::foreign::Origin;
use crate::notes::Notes;
use crate::strings::{NameId, Strings};
use crate::units::Nanos;

/// A host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process; a number below -2^62 stands for a process that has only a name.
    pub pid: i64,
    /// The thread; a number below -2^62 stands for a thread that has only a name.
    pub tid: i64,
    /// Its name, when the trace gives one.
    pub name: Option<NameId>,
}

/// A queue of work on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// The device's number within its host.
    pub device: u32,
    /// The stream's number; -1 is none in particular.
    pub stream: i64,
}

/// What one process did while it was profiled, in columns.
///
/// Rows keep the order of the file; threads, streams and names are numbered as they first appear.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The profiler that wrote it.
    pub origin: Origin,
    /// Every name, once.
    pub names: Strings,
    /// Host threads that did something.
    pub threads: Vec<Thread>,
    /// Device streams that did something.
    pub streams: Vec<Stream>,
    /// The devices of the host.
    pub devices: Vec<DeviceProperties>,
    /// Where this trace stands in a distributed run.
    pub distributed: Option<Distributed>,
    /// What all times are relative to: nanoseconds since 1970, or zero where times are absolute.
    pub base_time: Nanos,
    /// Ops and annotations on the host.
    pub ops: HostOps,
    /// Calls into the runtime and the driver.
    pub calls: Calls,
    /// Kernels, copies and fills on the device.
    pub activities: Activities,
    /// Annotations as seen on the device.
    pub gpu_annotations: GpuAnnotations,
    /// Synchronisations.
    pub syncs: Syncs,
    /// The profiler's own work.
    pub overheads: HostIntervals,
    /// Shapes of the inputs of ops, where recorded.
    pub inputs: OpInputs,
    /// Arguments of collectives: on kernels, and on the ops that called them.
    pub collectives: Vec<Collective>,
    /// What was repaired or left out.
    pub notes: Notes,
}

impl Trace {
    /// The name behind an id.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }
}
