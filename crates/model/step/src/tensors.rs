//! Tensors with an identity.

use steptime_graph::execution::{self, StorageId};

/// A tensor of a step; its producer and consumers are in [`Uses`](crate::Uses).
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Shape, strides, type, device, and memory location.
    pub value: steptime_aten::Tensor,
    /// Its memory, which views share; `None` where it was not recorded.
    pub storage: Option<StorageId>,
    /// Its tensor in the execution trace, where known. A rule may have changed its value.
    pub recorded: Option<execution::TensorId>,
    /// Whether its memory was made within the recorded step, possibly by an op that no longer runs.
    pub made: bool,
    /// End of its lifetime.
    pub until: LifetimeEnd,
}

/// End of the lifetime of a tensor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LifetimeEnd {
    /// The end of the last op that takes it.
    #[default]
    LastUse,
    /// The end of the step: the script keeps it.
    EndOfStep,
    /// The time when the next step has its own: the script keeps it from step to step.
    NextStep,
}
