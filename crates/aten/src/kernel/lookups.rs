//! Kernels that look rows up by index.

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
