//! Errors of deriving a step.

/// Reason why no step graph can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The step has no op.
    #[error("the execution trace has no op: record a whole training step with ExecutionTraceObserver")]
    Empty,
}
