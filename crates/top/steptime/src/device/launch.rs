//! What one op launches.

use smallvec::SmallVec;
use steptime_aten::kernel::Kernel;
use steptime_aten::{KernelCall, Place};
use steptime_cost::device::Context;
use steptime_graph::{ActivityId, OpId, StepGraph};
use steptime_trace::Nanos;

/// Where the operands of a launch lie.
pub(super) type Places = SmallVec<[Place; 4]>;

/// How well it is known what an op launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The op is known: its kernel has a family.
    Op,
    /// The op is not known, or what it launches is not: only the bytes of its arguments are.
    Arguments,
    /// Not even its arguments are known.
    Nothing,
}

/// What one op launches by itself.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The op; `None` for what is launched outside of ops.
    pub op: Option<OpId>,
    /// The kernel call it lowers to.
    pub call: KernelCall,
    /// What the call alone does not say.
    pub context: Context,
    /// How well it is known.
    pub known: Known,
    /// The device activities it launches.
    pub activities: Vec<ActivityId>,
}

impl Launch {
    /// The time measured for its activities: the sum of their medians.
    #[must_use]
    pub fn measured(&self, graph: &StepGraph) -> Option<Nanos> {
        let each = self.activities.iter().map(|&activity| graph.samples.median_duration(activity));
        each.sum::<Option<Nanos>>()
    }
}

/// Whether a kernel copies between host and device.
pub(super) fn is_transfer(call: &KernelCall) -> bool {
    matches!(call.kernel, Kernel::Transfer(_))
}
