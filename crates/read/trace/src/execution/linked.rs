//! Device work that a linker, such as `chakra_trace_link`, wrote among the nodes of an execution trace.

use crate::kineto::ActivityKind;
use crate::strings::NameId;
use crate::units::Nanos;

/// A kernel, copy or fill, linked to the op that launched it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedActivity {
    /// Kernel, copy or fill.
    pub kind: ActivityKind,
    /// The kernel, or the copy by the memories on both sides.
    pub name: NameId,
    /// The id of the op that launched it.
    pub parent: u64,
    /// When it began, where that is known.
    pub start: Option<Nanos>,
    /// Its duration, where that is known.
    pub dur: Option<Nanos>,
}
