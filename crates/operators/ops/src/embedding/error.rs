//! Errors of embedding calls, with their place and remedy.

use super::{Bounds, Element};

/// Reason why a call cannot be carried out.
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
        /// Number of rows, E.
        rows: usize,
        /// Number of columns, D.
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
        /// Number of columns, D.
        dim: usize,
        /// Bytes of a row.
        bytes: usize,
        /// Type of its elements.
        element: Element,
        /// Alignment of a row's start in bytes.
        align: usize,
    },
    /// Storage of the wrong size.
    #[error(
        "table {table:?}: storage of {found} bytes, but {rows} rows {pitch} bytes apart need {needed}: check rows, columns and type"
    )]
    Storage {
        /// Name of the table.
        table: String,
        /// Number of rows, E.
        rows: usize,
        /// Bytes from row to row.
        pitch: usize,
        /// Number of bytes found.
        found: usize,
        /// Number of bytes needed.
        needed: usize,
    },
    /// Memory or a file that the system does not provide.
    #[error("table {table:?}: {what}: {source}")]
    System {
        /// Name of the table.
        table: String,
        /// The requested resource.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// Training a table that cannot be trained.
    #[error("table {table:?} of {element} is {why}: training needs writable, aligned f32, f16 or bf16")]
    NotTrainable {
        /// Name of the table.
        table: String,
        /// Type of its elements.
        element: Element,
        /// The obstacle.
        why: &'static str,
    },
    /// The offsets' count does not match tables and bags.
    #[error(
        "{found} offsets, but {tables} tables x {bags} bags + 1 = {needed}: one for each bag, table by table, and the end"
    )]
    OffsetCount {
        /// Number of offsets given.
        found: usize,
        /// Number of tables, T.
        tables: usize,
        /// Number of bags, B.
        bags: usize,
        /// Number of offsets needed.
        needed: usize,
    },
    /// More bags of all tables than can be counted.
    #[error(
        "{tables} tables x {bags} bags have more offsets than can be counted: check the number of bags, or cut the batch into parts"
    )]
    TooManyBags {
        /// Number of tables, T.
        tables: usize,
        /// Number of bags, B.
        bags: usize,
    },
    /// An offset that is below the one before, or beyond the indices.
    #[error(
        "offset {at} is {value}, after {before}, with {indices} indices: offsets rise from 0 to the number of indices"
    )]
    Offset {
        /// Position among the offsets.
        at: usize,
        /// The offset.
        value: i64,
        /// The offset before it, 0 for the first.
        before: i64,
        /// Number of indices.
        indices: usize,
    },
    /// The numbers of weights and indices differ.
    #[error("{found} per-sample weights for {needed} indices: give one for each")]
    WeightCount {
        /// Number of weights given.
        found: usize,
        /// Number of weights needed.
        needed: usize,
    },
    /// A lookup of a row that does not exist.
    #[error("table {table} ({name:?}), bag {bag}, lookup {lookup}: index {index} is not in 0..{rows}: correct it, or choose bounds {warn} or {ignore}",
        warn = Bounds::WarnAndZero, ignore = Bounds::Ignore)]
    Index {
        /// Index of the table.
        table: usize,
        /// Name of the table.
        name: String,
        /// Index of the bag, within the table.
        bag: usize,
        /// Position among all indices.
        lookup: usize,
        /// The index.
        index: i64,
        /// Number of rows, E.
        rows: usize,
    },
    /// A slice too short, or rows that overlap.
    #[error(
        "{what}: {found} elements with rows {stride} apart, but {rows} rows of {columns} columns need {needed}"
    )]
    Size {
        /// Name of the argument.
        what: &'static str,
        /// Number of elements found.
        found: usize,
        /// Elements from row to row.
        stride: usize,
        /// Number of rows.
        rows: usize,
        /// Number of columns.
        columns: usize,
        /// Elements needed at this stride, which must be at least the columns.
        needed: usize,
    },
    /// Tables that cannot share an output.
    #[error("table {table} ({name:?}): {why}")]
    Pooling {
        /// Index of the table.
        table: usize,
        /// Name of the table.
        name: String,
        /// The obstacle, and the remedy.
        why: &'static str,
    },
    /// The index of a table that does not exist.
    #[error("there is no table {table}: there are {tables}")]
    NoTable {
        /// The requested index.
        table: usize,
        /// Number of tables, T.
        tables: usize,
    },
    /// Lookups of one table that do not fit 64-bit keys.
    #[error(
        "table {table:?}: {lookups} lookups of {rows} rows are too many to be grouped at once: cut the batch into parts"
    )]
    TooMany {
        /// Name of the table.
        table: String,
        /// Number of rows, E.
        rows: usize,
        /// Number of lookups of the table.
        lookups: usize,
    },
}
