//! Tensors that remain from step to step.

use steptime_eager::{Initial, NamedShard};

use crate::places::MemoryId;

/// A parameter, an optimizer state or a constant in the kept region.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) memory: MemoryId,
    /// Position of its first element.
    pub(crate) start: usize,
    pub(crate) shape: Vec<usize>,
    /// Its part of the whole parameter; `None` where it has all of it.
    pub(crate) part: Option<TensorPart>,
    pub(crate) kind: KeptKind,
}

/// A part of a table that a rank has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorPart {
    /// First row and first column of the part.
    pub offset: [usize; 2],
    /// Rows and columns of the whole.
    pub whole: [usize; 2],
}

impl TensorPart {
    pub(crate) fn new(shard: &NamedShard) -> TensorPart {
        let sizes = |all: [i64; 2]| all.map(|size| usize::try_from(size).unwrap_or(0));
        TensorPart { offset: sizes(shard.offset), whole: sizes(shard.whole) }
    }
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
