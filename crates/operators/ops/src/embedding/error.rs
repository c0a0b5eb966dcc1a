//! What can be wrong with a call, where, and what to do about it.

use super::{Bounds, Element};

/// A call that cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// A table with no rows or no columns, or with more bytes than the machine can count.
    #[error(
        "table {table:?}: {rows} rows of {dim} columns of {element} cannot be: give at least one of each, fewer than 2^63 bytes in all"
    )]
    Shape {
        /// Name of the table.
        table: String,
        /// E.
        rows: usize,
        /// D.
        dim: usize,
        /// Type of its elements.
        element: Element,
    },
    /// Rows that overlap, or that would not be aligned.
    #[error(
        "table {table:?}: rows {pitch} bytes apart, but a row of {dim} columns of {element} takes {bytes} and starts at a multiple of {align}"
    )]
    Pitch {
        /// Name of the table.
        table: String,
        /// Bytes from row to row.
        pitch: usize,
        /// D.
        dim: usize,
        /// Bytes of a row.
        bytes: usize,
        /// Type of its elements.
        element: Element,
        /// Bytes a row's start is a multiple of.
        align: usize,
    },
    /// Storage of the wrong size.
    #[error(
        "table {table:?}: storage of {found} bytes, but {rows} rows {pitch} bytes apart need {needed}: check rows, columns and type"
    )]
    Storage {
        /// Name of the table.
        table: String,
        /// E.
        rows: usize,
        /// Bytes from row to row.
        pitch: usize,
        /// Bytes there are.
        found: usize,
        /// Bytes there must be.
        needed: usize,
    },
    /// Memory or a file that the system does not give.
    #[error("table {table:?}: {what}: {source}")]
    System {
        /// Name of the table.
        table: String,
        /// What was asked for.
        what: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// Training a table that cannot be trained.
    #[error("table {table:?} of {element} is {why}: training needs writable, aligned f32, f16 or bf16")]
    NotTrainable {
        /// Name of the table.
        table: String,
        /// Type of its elements.
        element: Element,
        /// What is in the way.
        why: &'static str,
    },
    /// The offsets' count does not match tables and bags.
    #[error(
        "{found} offsets, but {tables} tables x {bags} bags + 1 = {needed}: one for each bag, table by table, and the end"
    )]
    OffsetCount {
        /// Offsets given.
        found: usize,
        /// T.
        tables: usize,
        /// B.
        bags: usize,
        /// Offsets there must be.
        needed: usize,
    },
    /// More bags of all tables than can be counted.
    #[error(
        "{tables} tables x {bags} bags have more offsets than can be counted: check the number of bags, or cut the batch into parts"
    )]
    TooManyBags {
        /// T.
        tables: usize,
        /// B.
        bags: usize,
    },
    /// An offset that falls behind the one before, or out of the indices.
    #[error(
        "offset {at} is {value}, after {before}, with {indices} indices: offsets rise from 0 to the number of indices"
    )]
    Offset {
        /// Place among the offsets.
        at: usize,
        /// The offset.
        value: i64,
        /// The offset before it, 0 for the first.
        before: i64,
        /// Number of indices.
        indices: usize,
    },
    /// As many weights as indices are needed.
    #[error("{found} per-sample weights for {needed} indices: give one for each")]
    WeightCount {
        /// Weights given.
        found: usize,
        /// Weights there must be.
        needed: usize,
    },
    /// A lookup of a row that is not there.
    #[error("table {table} ({name:?}), bag {bag}, lookup {lookup}: index {index} is not in 0..{rows}: correct it, or choose bounds {warn} or {ignore}",
        warn = Bounds::WarnAndZero, ignore = Bounds::Ignore)]
    Index {
        /// Place of the table.
        table: usize,
        /// Its name.
        name: String,
        /// The bag, within the table.
        bag: usize,
        /// Place among all indices.
        lookup: usize,
        /// The index.
        index: i64,
        /// E.
        rows: usize,
    },
    /// A slice too short, or rows that overlap.
    #[error(
        "{what}: {found} elements with rows {stride} apart, but {rows} rows of {columns} columns need {needed}"
    )]
    Size {
        /// Which argument.
        what: &'static str,
        /// Elements there are.
        found: usize,
        /// Elements from row to row.
        stride: usize,
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
        /// Elements needed at this stride, which must be at least the columns.
        needed: usize,
    },
    /// Tables that cannot share an output.
    #[error("table {table} ({name:?}): {why}")]
    Pooling {
        /// Place of the table.
        table: usize,
        /// Its name.
        name: String,
        /// What is in the way, and the remedy.
        why: &'static str,
    },
    /// A table's place beyond the last.
    #[error("there is no table {table}: there are {tables}")]
    NoTable {
        /// The place asked for.
        table: usize,
        /// T.
        tables: usize,
    },
    /// Lookups of one table that 64-bit keys do not hold.
    #[error(
        "table {table:?}: {lookups} lookups of {rows} rows are too many to be grouped at once: cut the batch into parts"
    )]
    TooMany {
        /// Name of the table.
        table: String,
        /// E.
        rows: usize,
        /// Lookups of the table.
        lookups: usize,
    },
}
