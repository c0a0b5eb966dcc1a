//! Inputs of a step by name, and their places in memory.

use std::collections::BTreeMap;

use steptime_step::TensorId;

use crate::places::MemoryId;

/// An input that a call takes as one, joined from the inputs of several tables.
#[derive(Debug, Clone)]
pub(crate) struct Joined {
    pub(crate) tensor: TensorId,
    /// Tables in order.
    pub(crate) tables: Vec<TensorId>,
    /// Whether it has offsets of bags; otherwise indices.
    pub(crate) offsets: bool,
}

/// Part of the memory of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputPart {
    pub(crate) memory: MemoryId,
    /// Position of the first element.
    pub(crate) start: usize,
    /// Number of elements.
    pub(crate) len: usize,
    pub(crate) kind: PartKind,
}

/// Contents of a part of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// Floats.
    Floats,
    /// Whole numbers.
    Ints,
    /// Offsets of bags of one table.
    Offsets {
        /// Number of lookups of the tables before.
        base: usize,
        /// Number of lookups of the table.
        lookups: usize,
        /// Whether the end of the last bag follows.
        closes: bool,
    },
}

/// The inputs of a program: the parts of memory that hold each.
pub(crate) type Inputs = BTreeMap<String, Vec<InputPart>>;
