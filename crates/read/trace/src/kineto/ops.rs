//! What ran on the host.

use super::ThreadId;
use crate::columns::columns;
use crate::strings::NameId;
use crate::units::Nanos;

/// What a host interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// An operator, `cpu_op`.
    Op,
    /// A label that the user or the profiler set, `user_annotation`.
    Annotation,
}

columns! {
    /// Ops and annotations on the host.
    pub struct HostOps of HostOp {
        /// Op or annotation.
        kind: HostKind,
        /// Its name.
        name: NameId,
        /// Where it ran.
        thread: ThreadId,
        /// When it began.
        start: Nanos,
        /// How long it took.
        dur: Nanos,
        /// Its `External id`; 0 is none.
        external_id: u64,
        /// Its `Record function id`, the `rf_id` of the execution trace; 0 is none.
        record_function_id: u64,
        /// The sequence number that ties forward to backward; -1 is none.
        sequence: i64,
        /// The thread of the forward op, counted by the profiler; 0 is none.
        forward_thread: u64,
    }
}

impl HostOps {
    /// When row `index` ended.
    ///
    /// # Panics
    /// When `index` is not below the number of rows.
    #[must_use]
    pub fn end(&self, index: usize) -> Nanos {
        self.start[index] + self.dur[index]
    }
}

columns! {
    /// Intervals on the host that carry nothing but a name.
    pub struct HostIntervals of HostInterval {
        /// Its name.
        name: NameId,
        /// Where it was.
        thread: ThreadId,
        /// When it began.
        start: Nanos,
        /// How long it took.
        dur: Nanos,
    }
}
