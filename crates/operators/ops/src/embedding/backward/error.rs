//! Errors of a backward pass.

use super::super::EmbeddingError;
use crate::optimizer::OptimizerError;

/// Reason why a backward pass cannot be carried out. Nothing has changed.
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
        /// Index of the table.
        table: usize,
        /// Number of lookups that were grouped.
        grouped: usize,
        /// Number of bags that were grouped, B.
        grouped_bags: usize,
        /// Number of rows that were grouped, E.
        grouped_rows: usize,
        /// Number of lookups given.
        given: usize,
        /// Number of bags given, B.
        given_bags: usize,
        /// Number of rows given, E.
        given_rows: usize,
    },
    /// Another number of tables than grouped or than the optimizer has state for.
    #[error("{what} of {found} tables for {tables} tables: make it for these tables")]
    Tables {
        /// The object with another number of tables.
        what: &'static str,
        /// Number of its tables.
        found: usize,
        /// Number of tables, T.
        tables: usize,
    },
    /// A table of another shape than the optimizer has state for.
    #[error("table {table}: state for {rows} rows of {dim} columns, but it has {given_rows} of {given_dim}")]
    Shape {
        /// Index of the table.
        table: usize,
        /// Number of rows of the state, E.
        rows: usize,
        /// Number of columns of the state, D.
        dim: usize,
        /// Number of rows of the table, E.
        given_rows: usize,
        /// Number of columns of the table, D.
        given_dim: usize,
    },
}
