//! One measured kernel call.

use steptime_aten::KernelCall;
use steptime_trace::Nanos;

use super::context::Context;

/// One kernel call, measured in a known state of the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Case of the sweep: rows of one case are similar, and are never on both sides of a test.
    pub case: u32,
    /// Op, such as `aten::addmm`.
    pub op: String,
    /// Kernel call that the op launched.
    pub call: KernelCall,
    /// State of the cache, and the indices.
    pub ctx: Context,
    /// Measured duration.
    pub time: Nanos,
}
