//! Complete events without a category.

use crate::strings::NameId;
use crate::units::Nanos;

/// A complete event without a category.
#[derive(Clone, Copy)]
pub(super) struct Uncategorized {
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) name: NameId,
    pub(super) start: Nanos,
    pub(super) dur: Nanos,
    pub(super) correlation: u64,
    /// The node of the graph that a kernel belongs to; 0 is none.
    pub(super) graph_node: u64,
    /// The number of the step that it marks.
    pub(super) step: Option<i64>,
    /// How a kernel was launched, or what was copied.
    pub(super) details: Option<NameId>,
    /// Where it stands in the file.
    pub(super) at: u64,
}
