//! Tensors that remain from step to step.

use steptime_eager::Initial;

use crate::places::MemoryId;

/// A parameter, an optimizer state or a constant in the kept region.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) memory: MemoryId,
    /// Position of its first element.
    pub(crate) start: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) kind: KeptKind,
}

/// Purpose of a kept tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KeptKind {
    Parameter(Initial),
    State,
    Indices(Vec<i64>),
}

impl Kept {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }
}
