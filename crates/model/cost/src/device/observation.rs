//! One measured kernel call.

use steptime_aten::KernelCall;
use steptime_trace::Nanos;

use super::context::Context;

/// One kernel call, measured in a known state of the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The case of the sweep it is from: rows of one case are alike, and are never on both sides of a test.
    pub case: u32,
    /// The op, `aten::addmm`.
    pub op: String,
    /// What it launched.
    pub call: KernelCall,
    /// The state of the cache, and the indices.
    pub ctx: Context,
    /// How long it took.
    pub time: Nanos,
}
