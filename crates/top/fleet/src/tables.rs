//! The tables of a lake.

mod columns;
mod events;
mod sums;

use arrow_array::RecordBatch;
use parquet::errors::ParquetError;

use crate::rank::Rank;

/// A table of a lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// A row for each step.
    Steps,
    /// A row for each name of ops and annotations in a step.
    Ops,
    /// A row for each name of kernels, copies and fills in a step on a stream.
    Kernels,
    /// A row for each collective.
    Collectives,
    /// A row for each gap, in which a stream ran nothing.
    Gaps,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 5] = [Table::Steps, Table::Ops, Table::Kernels, Table::Collectives, Table::Gaps];

    /// Returns its name, as in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Steps => "steps",
            Table::Ops => "ops",
            Table::Kernels => "kernels",
            Table::Collectives => "collectives",
            Table::Gaps => "gaps",
        }
    }

    /// Returns its rows of one rank. Times are whole nanoseconds; beginnings are counted from 1970 if the trace has its base
    /// time.
    ///
    /// # Errors
    /// If its columns have different lengths, which cannot happen.
    pub fn record_batch(self, rank: &Rank<'_>) -> Result<RecordBatch, ParquetError> {
        let trace = rank.trace();
        match self {
            Table::Steps => events::steps(&rank.steps(), trace).batch(),
            Table::Ops => sums::ops(&rank.ops(), trace).batch(),
            Table::Kernels => sums::kernels(&rank.kernels(), trace).batch(),
            Table::Collectives => events::collectives(&rank.collectives(), trace).batch(),
            Table::Gaps => events::gaps(&rank.gaps(), trace).batch(),
        }
    }
}
