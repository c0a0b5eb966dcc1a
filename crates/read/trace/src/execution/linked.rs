//! Device work that a linker, such as `chakra_trace_link`, wrote among the nodes of an execution trace.

use crate::kineto::ActivityKind;
use crate::strings::NameId;
use crate::units::Nanos;

/// A kernel, copy or fill, linked to the op that launched it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedActivity {
    /// Kernel, copy or fill.
    pub kind: ActivityKind,
    /// The kernel, or what is copied from where to where.
    pub name: NameId,
    /// The id of the op that launched it.
    pub parent: u64,
    /// When it began, where that is known.
    pub start: Option<Nanos>,
    /// How long it took, where that is known.
    pub dur: Option<Nanos>,
}
