//! What can be wrong with a step.

/// Why no step graph can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It has no op.
    #[error("the execution trace has no op: record a whole training step with ExecutionTraceObserver")]
    Empty,
}
