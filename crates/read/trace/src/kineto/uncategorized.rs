//! Complete events without a category.

use crate::strings::NameId;
use crate::units::Nanos;

/// Complete event without a category.
#[derive(Clone, Copy)]
pub(super) struct UncategorizedEvent {
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) name: NameId,
    pub(super) start: Nanos,
    pub(super) dur: Nanos,
    pub(super) correlation: u64,
    /// Graph node that a kernel belongs to; 0 if there is none.
    pub(super) graph_node: u64,
    /// Number of the step that it marks.
    pub(super) step: Option<i64>,
    /// Launch details of a kernel, or details of a copy.
    pub(super) details: Option<NameId>,
    /// Offset in the file.
    pub(super) at: u64,
}
