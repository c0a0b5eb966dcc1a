//! Events of the host.

use super::ThreadId;
use crate::columns::columns;
use crate::strings::NameId;
use crate::units::Nanos;

/// Kind of a host interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// Operator, `cpu_op`.
    Op,
    /// Label set by the user or the profiler, `user_annotation`.
    Annotation,
}

columns! {
    /// Ops and annotations on the host.
    pub struct HostOps of HostOp {
        /// Op or annotation.
        kind: HostKind,
        /// Name of the op.
        name: NameId,
        /// Thread that ran it.
        thread: ThreadId,
        /// Start time.
        start: Nanos,
        /// Duration.
        dur: Nanos,
        /// `External id`; 0 if there is none.
        external_id: u64,
        /// `Record function id`, the `rf_id` of the execution trace; 0 if there is none.
        record_function_id: u64,
        /// Sequence number that links forward and backward; -1 if there is none.
        sequence: i64,
        /// Thread of the forward op, in the profiler's numbering; 0 if there is none.
        forward_thread: u64,
    }
}

impl HostOps {
    /// Returns the end time of row `index`.
    ///
    /// # Panics
    /// If `index` is not below the number of rows.
    #[must_use]
    pub fn end(&self, index: usize) -> Nanos {
        self.start[index] + self.dur[index]
    }
}

columns! {
    /// Intervals on the host that have only a name.
    pub struct HostIntervals of HostInterval {
        /// Name of the interval.
        name: NameId,
        /// Thread of the interval.
        thread: ThreadId,
        /// Start time.
        start: Nanos,
        /// Duration.
        dur: Nanos,
    }
}
