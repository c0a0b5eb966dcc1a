//! Training data.

#![deny(missing_docs)]
#![deny(unsafe_code)]

mod batches;
pub mod convert;
mod error;
mod format;
#[expect(unsafe_code, reason = "mapping a file; each use has its reason")]
mod map;
mod source;
mod synthetic;

pub use batches::{
    ALIGNMENT, Allocate, Batch, BatchOptions, Batches, Buffer, ColumnIndices, ColumnLayout, Heap, HeapBuffer,
    Last, Layout, Position, Shuffle,
};
pub use error::Error;
pub use format::{
    Block, Categorical, Column, Dataset, Dense, DenseType, FEATURES, Features, Hotness, IdRule, IndexType,
    Label, Rows, Split, SplitName, Splits, Transform, VERSION, Writer,
};
pub use source::{Selection, Slot, Slots, Source};
pub use synthetic::{Best, KAGGLE_CARDINALITIES, Planted, PlantedOptions, PlantedRow};
