//! Kernels that look rows up by index.

use std::sync::Arc;

use steptime_launch::RowSort;

use super::Pass;

/// How rows of a bag are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// Their maximum.
    Max,
    /// Not at all.
    None,
}

/// Pooled lookups in one table, torch's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EmbeddingBag {
    /// Pass.
    pub pass: Pass,
    /// Rows of the table.
    pub rows: u64,
    /// Columns.
    pub dim: u64,
    /// Bags.
    pub bags: u64,
    /// Lookups, all bags together.
    pub lookups: u64,
    /// How rows are pooled.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Bytes an index.
    pub index_bytes: u64,
}

/// An optimizer that updates rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowOptimizer {
    /// Plain SGD.
    Sgd,
    /// Adagrad with one sum a row.
    RowWiseAdagrad,
    /// Adagrad.
    Adagrad,
    /// Adam.
    Adam,
    /// Adam with one second moment a row.
    PartialRowWiseAdam,
    /// Any other.
    Other,
}

/// Pooled lookups in many tables by one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableBatched {
    /// Pass; backward includes the optimizer.
    pub pass: Pass,
    /// Tables.
    pub tables: u64,
    /// Rows, all tables together.
    pub rows: u64,
    /// Columns, all tables together.
    pub dims: u64,
    /// Bags a table.
    pub batch: u64,
    /// Lookups, all tables and bags together.
    pub lookups: u64,
    /// How rows are pooled.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Of the backward pass.
    pub optimizer: RowOptimizer,
    /// Bytes an index.
    pub index_bytes: u64,
}

/// Which kernel takes by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatherKind {
    /// `gather`: one index for each element, or for each row where the index is expanded.
    Gather,
    /// `index_select`, `embedding`: one index a row.
    IndexSelect,
    /// `index`: several index tensors, one for each leading dimension.
    Index,
    /// `take`, `masked_select` and others.
    Other,
}

/// Rows, or single elements, taken by index: `out[l, :] = source[index[l], :]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gather {
    /// Which kernel.
    pub kind: GatherKind,
    /// Places to take from.
    pub rows: u64,
    /// Indices.
    pub lookups: u64,
    /// Bytes that lie together at each.
    pub row_bytes: u64,
    /// Bytes an index, all index tensors together; distinct ones only.
    pub index_bytes: u64,
}

/// Which kernel puts by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScatterKind {
    /// `index_add_`: atomics.
    IndexAdd,
    /// `scatter_add_`, `scatter`: one index an element.
    Scatter,
    /// `index_put_`, overwriting.
    IndexPut,
    /// `index_put_` with `accumulate`: sorts the indices first.
    IndexPutAccumulate,
    /// `embedding_dense_backward`: sorts the indices first, or few of them by a simpler kernel.
    EmbeddingDense,
    /// `index_copy_`, `index_fill_`, `masked_scatter_` and others.
    Other,
}

/// Rows, or single elements, put by index: `target[index[l], :] += source[l, :]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scatter {
    /// Which kernel.
    pub kind: ScatterKind,
    /// Places to put to.
    pub rows: u64,
    /// Indices.
    pub lookups: u64,
    /// Bytes that lie together at each.
    pub row_bytes: u64,
    /// Bytes an index.
    pub index_bytes: u64,
}

/// A sparse tensor coalesced: the indices are sorted by merging, then the rows of each are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coalesce {
    /// Places that indices may name.
    pub rows: u64,
    /// Indices.
    pub lookups: u64,
    /// Bytes of a row of values.
    pub row_bytes: u64,
}

/// A table of [`FusedBags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FusedTable {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub dim: u64,
    /// Bytes of a row, with scale and bias where it has them.
    pub row_bytes: u64,
}

/// Pooled lookups in many tables of any sizes, our own kernels: all tables in one launch, or the backward pass, which
/// groups the lookups by row and steps each row once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FusedBags {
    /// The optimizer that the backward pass steps; none: the forward pass.
    pub update: Option<RowOptimizer>,
    /// The tables, in their order.
    pub tables: Arc<[FusedTable]>,
    /// Bags a table.
    pub bags: u64,
    /// Lookups, all tables and bags together.
    pub lookups: u64,
    /// How rows are pooled.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Bits of an element: 32, 16, 8 or 4.
    pub element_bits: u64,
    /// Bytes an index.
    pub index_bytes: u64,
}

impl FusedBags {
    /// Lookups of one table: of each as many, for what they are is in the data.
    #[must_use]
    pub fn lookups_of_table(&self) -> u64 {
        self.lookups / (self.tables.len() as u64).max(1)
    }

    /// Columns of all tables.
    #[must_use]
    pub fn dims(&self) -> u64 {
        self.tables.iter().fold(0, |sum: u64, table| sum.saturating_add(table.dim))
    }

    /// How the backward pass sorts its lookups, with as many in each table.
    #[must_use]
    pub fn row_sort(&self) -> RowSort {
        let most = self.tables.iter().map(|table| table.rows).max().unwrap_or(0);
        RowSort::new(most, self.lookups_of_table())
    }
}

/// Whole rows taken by index, our own kernel: row after row, or slice of columns after slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TiledGather {
    /// Rows of the table.
    pub rows: u64,
    /// Indices.
    pub lookups: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Bytes of a row that are read for all lookups before the next ones are; 0: rows are read whole.
    pub slice: u64,
    /// Bytes an index.
    pub index_bytes: u64,
}
