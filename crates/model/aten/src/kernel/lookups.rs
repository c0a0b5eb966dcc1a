//! Kernels that look up rows by index.

use std::sync::Arc;

use steptime_launch::RowSort;

use super::Pass;

/// Pooling of the rows of a bag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Sum of the rows.
    Sum,
    /// Mean of the rows.
    Mean,
    /// Maximum of the rows.
    Max,
    /// No pooling.
    None,
}

/// Pooled lookups in one table, with PyTorch's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EmbeddingBag {
    /// Forward or backward pass.
    pub pass: Pass,
    /// Rows of the table.
    pub rows: u64,
    /// Columns of the table.
    pub dim: u64,
    /// Number of bags.
    pub bags: u64,
    /// Lookups over all bags.
    pub lookups: u64,
    /// Pooling of rows.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Bytes per index.
    pub index_bytes: u64,
}

/// Optimizer that updates rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowOptimizer {
    /// Plain SGD.
    Sgd,
    /// Adagrad with one sum per row.
    RowWiseAdagrad,
    /// Adagrad.
    Adagrad,
    /// Adam.
    Adam,
    /// Adam with one second moment per row.
    PartialRowWiseAdam,
    /// Any other optimizer.
    Other,
}

/// Pooled lookups in many tables in one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableBatched {
    /// Forward or backward pass; backward includes the optimizer.
    pub pass: Pass,
    /// Number of tables.
    pub tables: u64,
    /// Rows over all tables.
    pub rows: u64,
    /// Columns over all tables.
    pub dims: u64,
    /// Bags per table.
    pub batch: u64,
    /// Lookups over all tables and bags.
    pub lookups: u64,
    /// Pooling of rows.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Optimizer of the backward pass.
    pub optimizer: RowOptimizer,
    /// Bytes per index.
    pub index_bytes: u64,
}

/// Kind of kernel that reads by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatherKind {
    /// `gather`: one index per element, or per row if the index is expanded.
    Gather,
    /// `index_select`, `embedding`: one index per row.
    IndexSelect,
    /// `index`: several index tensors, one per leading dimension.
    Index,
    /// `take`, `masked_select` and others.
    Other,
}

/// Read of rows, or single elements, by index: `out[l, :] = source[index[l], :]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gather {
    /// Kind of the kernel.
    pub kind: GatherKind,
    /// Number of places to read from.
    pub rows: u64,
    /// Number of indices.
    pub lookups: u64,
    /// Adjacent bytes at each place.
    pub row_bytes: u64,
    /// Bytes per index over all index tensors; only distinct ones.
    pub index_bytes: u64,
}

/// Kind of kernel that writes by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScatterKind {
    /// `index_add_`: with atomics.
    IndexAdd,
    /// `scatter_add_`, `scatter`: one index per element.
    Scatter,
    /// `index_put_`, overwriting.
    IndexPut,
    /// `index_put_` with `accumulate`: sorts the indices first.
    IndexPutAccumulate,
    /// `embedding_dense_backward`: sorts the indices first, or uses a simpler kernel for few of them.
    EmbeddingDense,
    /// `index_copy_`, `index_fill_`, `masked_scatter_` and others.
    Other,
}

/// Write of rows, or single elements, by index: `target[index[l], :] += source[l, :]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scatter {
    /// Kind of the kernel.
    pub kind: ScatterKind,
    /// Number of places to write to.
    pub rows: u64,
    /// Number of indices.
    pub lookups: u64,
    /// Adjacent bytes at each place.
    pub row_bytes: u64,
    /// Bytes per index.
    pub index_bytes: u64,
}

/// Coalescing of a sparse tensor: a merge sort of the indices, then a sum of the rows of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coalesce {
    /// Number of places that indices may refer to.
    pub rows: u64,
    /// Number of indices.
    pub lookups: u64,
    /// Bytes per row of values.
    pub row_bytes: u64,
}

/// Table of [`FusedBags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FusedTable {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub dim: u64,
    /// Bytes per row, including scale and bias if it has them.
    pub row_bytes: u64,
    /// Number of its lookups: the mean of all tables, where those of each are not known.
    pub lookups: u64,
}

/// Pooled lookups in many tables of any sizes, with this project's kernels: all tables in one launch, or the backward pass, which
/// groups the lookups by row and updates each row once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FusedBags {
    /// Optimizer of the backward pass; `None` for the forward pass.
    pub update: Option<RowOptimizer>,
    /// Tables, in order.
    pub tables: Arc<[FusedTable]>,
    /// Bags per table.
    pub bags: u64,
    /// Lookups over all tables and bags.
    pub lookups: u64,
    /// Pooling of rows.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Bits per element: 32, 16, 8 or 4.
    pub element_bits: u64,
    /// Bytes per index.
    pub index_bytes: u64,
}

impl FusedBags {
    /// Returns the largest number of lookups of a table.
    #[must_use]
    pub fn most_lookups(&self) -> u64 {
        self.tables.iter().map(|table| table.lookups).max().unwrap_or(0)
    }

    /// Returns the columns over all tables.
    #[must_use]
    pub fn dims(&self) -> u64 {
        self.tables.iter().fold(0, |sum: u64, table| sum.saturating_add(table.dim))
    }

    /// Returns the sort of the lookups in the backward pass.
    #[must_use]
    pub fn row_sort(&self) -> RowSort {
        let most = self.tables.iter().map(|table| table.rows).max().unwrap_or(0);
        RowSort::new(most, self.most_lookups())
    }
}

/// Read of whole rows by index, with this project's kernel: one row after the other, or one slice of columns after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TiledGather {
    /// Rows of the table.
    pub rows: u64,
    /// Number of indices.
    pub lookups: u64,
    /// Bytes per row.
    pub row_bytes: u64,
    /// Bytes of a row that are read for all lookups before the next slice; 0 if rows are read whole.
    pub slice: u64,
    /// Bytes per index.
    pub index_bytes: u64,
}
