//! Device work that a linker, such as `chakra_trace_link`, wrote among the nodes of an execution trace.

use crate::kineto::ActivityKind;
use crate::strings::NameId;
use crate::units::Nanos;

/// Kernel, copy or fill, linked to the op that launched it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedActivity {
    /// Kernel, copy or fill.
    pub kind: ActivityKind,
    /// Name of the kernel, or of the copy with the memories on both sides.
    pub name: NameId,
    /// Id of the op that launched it.
    pub parent: u64,
    /// Start time, if known.
    pub start: Option<Nanos>,
    /// Duration, if known.
    pub dur: Option<Nanos>,
}
