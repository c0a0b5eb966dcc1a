//! Lifetime of a piece of memory.

/// The lifetime of one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// Place where it is made; `None` where it is older than the step.
    pub made: Option<usize>,
    /// Place of its first use.
    pub first: usize,
    /// Place of the end of its last use.
    pub last: usize,
}
