//! A launch of one op.

use smallvec::SmallVec;
use steptime_aten::kernel::Kernel;
use steptime_aten::{KernelCall, Place};
use steptime_cost::device::Context;
use steptime_graph::{ActivityId, OpId, StepGraph};
use steptime_trace::Nanos;

/// Memory locations of a launch's operands.
pub(super) type Places = SmallVec<[Place; 4]>;

/// Degree of knowledge about a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowledge {
    /// The op is known, and its kernel has a family.
    Op,
    /// The op or its kernel is unknown; only the bytes of its arguments are known.
    Arguments,
    /// Not even the arguments are known.
    Nothing,
}

/// A launch that one op makes itself.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The op; `None` for launches outside of ops.
    pub op: Option<OpId>,
    /// The lowered kernel call.
    pub call: KernelCall,
    /// Context that the call alone does not give.
    pub context: Context,
    /// Degree of knowledge about it.
    pub known: Knowledge,
    /// Device activities of the launch.
    pub activities: Vec<ActivityId>,
}

impl Launch {
    /// Measured time of its activities: the sum of their medians.
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
