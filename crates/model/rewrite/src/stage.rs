//! The order of rules.

/// When a rule is applied among others: whatever order they are given in, earlier stages come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Ops that the model does without.
    Removal,
    /// Samples in a batch.
    Batch,
    /// Sizes of the model.
    Size,
    /// Tables and parameters that ranks share.
    Placement,
    /// Operators for tables: these take lookups as PyTorch makes them.
    Operators,
    /// Embedding bags that are looked up by themselves.
    Bags,
    /// Types: casts come before what takes them is fused.
    Precision,
    /// How products of 32 bits are rounded, where any are left.
    Rounding,
    /// Layouts of images.
    Layout,
    /// Products with what follows.
    Products,
    /// Chains of elementwise ops.
    Chains,
    /// The form of the optimizer.
    Optimizer,
    /// Copies of the batch under the step before ...
    Prefetch,
    /// ... or where they are needed.
    Copies,
    /// Numbers that are read back.
    Reads,
    /// Blocks that run again in the backward pass.
    Recomputation,
    /// Streams of chosen ops ...
    ChosenStreams,
    /// ... and of branches.
    Streams,
    /// Batches of an update: all that comes before is done for each.
    Accumulation,
    /// Averages of gradients, once an update.
    Averages,
    /// Calls and times of ops, from their arguments.
    Derivation,
    /// A CUDA graph of all that is there.
    Capture,
}
