//! Order of rules.

/// Stage in which a rule is applied: earlier stages come first, independent of the order in which rules are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Removal of ops.
    Removal,
    /// Samples in a batch.
    Batch,
    /// Sizes of the model.
    Size,
    /// Placement of tables and parameters on ranks.
    Placement,
    /// Operators for tables, which take lookups in the form of PyTorch's.
    Operators,
    /// Embedding bags with separate lookups.
    Bags,
    /// Data types: casts are inserted before their consumers are fused.
    Precision,
    /// Casts in the kernels beside them.
    Casts,
    /// Rounding of the remaining 32-bit matrix products.
    Rounding,
    /// Layouts of images.
    Layout,
    /// Matrix products with their epilogues.
    Products,
    /// Losses with their gradients.
    Losses,
    /// Inputs of concatenations within the results.
    Columns,
    /// Copies around exchanges.
    Exchanges,
    /// Chains of elementwise ops.
    Chains,
    /// Form of the optimizer.
    Optimizer,
    /// Kernels of the ops.
    Kernels,
    /// Copies of the batch during the previous step ...
    Prefetch,
    /// ... or where they are first used.
    Copies,
    /// Numbers that are read back to the host.
    Reads,
    /// Blocks that are recomputed in the backward pass.
    Recomputation,
    /// Streams for chosen ops ...
    ChosenStreams,
    /// ... and for independent branches.
    Streams,
    /// Batches of an update: all earlier changes apply to each.
    Accumulation,
    /// Averages of gradients, once per update.
    Averages,
    /// Calls and times of ops, derived from their arguments.
    Derivation,
    /// A CUDA graph of all ops.
    Capture,
    /// The order of its nodes.
    Nodes,
}
