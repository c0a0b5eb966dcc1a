//! Contents of one Kineto file.

use super::{Activities, Calls, DeviceProperties, GpuAnnotations, HostIntervals, HostOps, OpInputs, Syncs};
use crate::collective::Collective;
use crate::distributed::DistributedRun;
use crate::other_profilers::Origin;
use crate::repairs::Notes;
use crate::strings::{NameId, Strings};
use crate::units::Nanos;

/// Host thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process id; a number below -2^62 represents a process that has only a name.
    pub pid: i64,
    /// Thread id; a number below -2^62 represents a thread that has only a name.
    pub tid: i64,
    /// Name, if the trace has one.
    pub name: Option<NameId>,
}

/// Queue of work on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// Number of the device within its host.
    pub device: u32,
    /// Number of the stream; -1 for no particular stream.
    pub stream: i64,
}

/// Events of one process while it was profiled, in columns.
///
/// Rows keep the order of the file; threads, streams and names are numbered as they first appear.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Profiler that wrote it.
    pub origin: Origin,
    /// Names of the trace, each once.
    pub names: Strings,
    /// Host threads with events.
    pub threads: Vec<Thread>,
    /// Device streams with events.
    pub streams: Vec<Stream>,
    /// Devices of the host.
    pub devices: Vec<DeviceProperties>,
    /// Rank and process groups in a distributed run.
    pub distributed: Option<DistributedRun>,
    /// Reference of all times: nanoseconds since 1970, or zero if times are absolute.
    pub base_time: Nanos,
    /// Ops and annotations on the host.
    pub ops: HostOps,
    /// Calls into the runtime and the driver.
    pub calls: Calls,
    /// Kernels, copies and fills on the device.
    pub activities: Activities,
    /// Host annotations on the device.
    pub gpu_annotations: GpuAnnotations,
    /// Waits of the host or streams for the device.
    pub syncs: Syncs,
    /// Work of the profiler itself.
    pub overheads: HostIntervals,
    /// Shapes of the inputs of ops, if recorded.
    pub inputs: OpInputs,
    /// Arguments of collectives: on kernels, and on the ops that called them.
    pub collectives: Vec<Collective>,
    /// Repairs and omissions.
    pub notes: Notes,
}

impl Trace {
    /// Returns the name of an id.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }
}
