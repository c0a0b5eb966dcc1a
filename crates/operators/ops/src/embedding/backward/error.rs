//! What can be wrong with a backward pass.

use super::super::EmbeddingError;
use crate::optimizer::OptimizerError;

/// A backward pass that cannot be carried out. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackwardError {
    /// Tables, lookups or gradients that do not fit each other.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// Settings outside of their range.
    #[error(transparent)]
    Setting(#[from] OptimizerError),
    /// Lookups that were grouped for other tables, or other lookups than those grouped.
    #[error(
        "table {table}: grouped {grouped} lookups in {grouped_bags} bags of {grouped_rows} rows, given {given} in {given_bags} of {given_rows}: group these lookups first"
    )]
    Grouping {
        /// Place of the table.
        table: usize,
        /// Lookups that were grouped.
        grouped: usize,
        /// B then.
        grouped_bags: usize,
        /// E then.
        grouped_rows: usize,
        /// Lookups given.
        given: usize,
        /// B of these.
        given_bags: usize,
        /// E.
        given_rows: usize,
    },
    /// Another number of tables than grouped or than the optimizer has state for.
    #[error("{what} of {found} tables for {tables} tables: make it for these tables")]
    Tables {
        /// What is of another number of tables.
        what: &'static str,
        /// Its number.
        found: usize,
        /// T.
        tables: usize,
    },
    /// A table of another shape than the optimizer has state for.
    #[error("table {table}: state for {rows} rows of {dim} columns, but it has {given_rows} of {given_dim}")]
    Shape {
        /// Place of the table.
        table: usize,
        /// E of the state.
        rows: usize,
        /// D of the state.
        dim: usize,
        /// E.
        given_rows: usize,
        /// D.
        given_dim: usize,
    },
}
