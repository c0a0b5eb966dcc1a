//! Tensors that have an identity.

use steptime_graph::execution::{self, StorageId};

/// A tensor of a step: what makes it and what takes it is in [`Uses`](crate::Uses).
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its shape, strides, type, device, and the place of its memory.
    pub value: steptime_aten::Tensor,
    /// Its memory, which views share; `None` where it was not recorded.
    pub storage: Option<StorageId>,
    /// The tensor of the execution trace that it was, where that is known. A rule may have changed its value.
    pub recorded: Option<execution::TensorId>,
    /// Whether its memory was made within the recorded step, be it by an op that runs no more.
    pub made: bool,
    /// Until when it is there.
    pub until: Until,
}

/// Until when a tensor is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Until {
    /// Until the last op that takes it ends.
    #[default]
    LastUse,
    /// Until the step ends: the script keeps it.
    EndOfStep,
    /// Until the next step has its own: the script keeps it from step to step.
    NextStep,
}
