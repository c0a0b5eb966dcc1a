//! How long a piece of memory is needed.

/// The life of one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// When it is made; `None` where it is older than the step.
    pub made: Option<usize>,
    /// When it is first taken or given.
    pub first: usize,
    /// When it is needed no more.
    pub last: usize,
}
