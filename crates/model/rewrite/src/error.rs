//! Errors of rules that do not apply.

/// A rule that does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {source}")]
pub struct RuleError {
    /// Name of the rule.
    pub rule: &'static str,
    /// Cause.
    pub source: Error,
}

/// Reason why a rule does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The patched step is invalid.
    #[error(transparent)]
    Patch(#[from] steptime_step::Error),
    /// There is nothing to change.
    #[error("{reason}")]
    NothingToDo {
        /// Ops that the rule looked for, and ops found instead.
        reason: String,
    },
    /// The number of placed tables differs from the number of looked-up tables.
    #[error(
        "{homes} tables are placed, but the step looks up {tables}: place each table, in the order of their first lookups"
    )]
    Homes {
        /// Number of placed tables.
        homes: usize,
        /// Number of looked-up tables.
        tables: usize,
    },
    /// Invalid placement of a table.
    #[error("table {table} {what}")]
    Home {
        /// Index of the table.
        table: usize,
        /// Reason, as the rest of a sentence that begins with the table.
        what: String,
    },
    /// An input tensor holds both lookups and other inputs.
    #[error(
        "{op} takes the input of shape {shape:?}, which also holds table lookups: lookups would cover the samples of all ranks, but {op} needs \
        those of this rank only; record the step with a separate input for the tables"
    )]
    SharedInput {
        /// The op.
        op: String,
        /// The input's shape.
        shape: Vec<i64>,
    },
    /// Job with 0 ranks.
    #[error("a job of 0 ranks: it must have at least 1")]
    Ranks,
    /// Text that selects no blocks.
    #[error(
        "`{text}` selects no blocks: expected module paths, as module:Net.down.*,module:Net.up.*, a depth inside the model, as depth:2, or \
        whole for the whole model as one block"
    )]
    NoBlocks {
        /// The given text.
        text: String,
    },
    /// The step has several backward passes.
    #[error(
        "the recorded step has several backward passes, and not all of them would average their gradients: record a step of one batch, and add \
        --accumulate N"
    )]
    SeveralPasses,
    /// Sparse gradients cannot be averaged.
    #[error(
        "the gradient of the parameter of shape {shape:?} is sparse, and NCCL does not average sparse gradients: place the tables on ranks, \
        or make them sparse=False"
    )]
    SparseAveraged {
        /// The parameter's shape.
        shape: Vec<i64>,
    },
    /// Number of streams out of range.
    #[error("{asked} streams: it must be 2 to {most}, including the stream of all other ops")]
    Streams {
        /// Requested number of streams.
        asked: usize,
        /// Maximum.
        most: usize,
    },
    /// Batch of zero samples.
    #[error("a batch of {0}: it must be at least 1")]
    Batch(u64),
    /// Batch that is not a multiple of the passes of an update.
    #[error("a batch of {batch} in {passes} passes of one update: it must be a multiple of {passes}")]
    Passes {
        /// Samples per update.
        batch: u64,
        /// Passes per update.
        passes: u64,
    },
    /// The recording does not have its batch size.
    #[error("the recorded batch size is unknown, as the recorder did not write it: pass --recorded-batch N")]
    NoBatch,
    /// No tensor has a dimension that is a multiple of the batch.
    #[error(
        "no input of the step has a dimension of {batch}: name a dimension that grows with the batch by --batch-dim"
    )]
    NoBatchDim {
        /// Batch size.
        batch: u64,
    },
    /// Dimension that overflows.
    #[error("{op} would have a dimension of more than 2^63 - 1")]
    TooLarge {
        /// The op.
        op: String,
    },
    /// Number of accumulated batches out of range.
    #[error("gradient accumulation over {batches} batches: it must be 1 to {most}")]
    Accumulated {
        /// Requested number of batches.
        batches: u32,
        /// Maximum.
        most: u32,
    },
    /// Training after an update would add to the gradients of another update.
    #[error("{op} trains again after the first update of the step: each update would need its own batches")]
    SeveralUpdates {
        /// First op that trains after the update.
        op: String,
    },
    /// Size of zero.
    #[error("{path} = 0: it must be at least 1")]
    SizeOfNone {
        /// Path of the size.
        path: String,
    },
    /// Text that selects no ops.
    #[error(
        "`{text}` selects no op: expected a name, as aten::dropout or aten::*norm*, a number, as ops[17], or a module, as module:DLRM.top"
    )]
    NoSelection {
        /// The given text.
        text: String,
    },
    /// No op matches.
    #[error("no op matches {text}: `steptime inspect` lists the names of ops; * matches any letters")]
    NoSuchOp {
        /// The given text.
        text: String,
    },
    /// No module matches.
    #[error("no module matches {text}: `steptime predict --json` lists the modules; * matches any letters")]
    NoSuchModule {
        /// The given text.
        text: String,
    },
    /// Called module whose ops are unknown.
    #[error(
        "the ops of module {text} are unknown: under torch.no_grad only the outermost called module has its ops attributed"
    )]
    ModuleWithoutOps {
        /// The given text.
        text: String,
    },
    /// Step without any known module.
    #[error(
        "the recording does not say which modules ran its ops: record the step again with this version, without torch.compile"
    )]
    NoModules,
    /// Unknown name of a size.
    #[error(
        "unknown size {path}: expected tables[0].rows, tables[0].columns, tables[0].lookups or layers[0].width; * selects all"
    )]
    UnknownSize {
        /// The given path.
        path: String,
    },
    /// Table or layer that the step does not have.
    #[error("{path}: the step has {count} {what} ({ops}), counted from 0")]
    NoSuchPart {
        /// The given path.
        path: String,
        /// Kind of part.
        what: String,
        /// Number of such parts.
        count: usize,
        /// Ops that define such a part.
        ops: String,
    },
    /// Bags with different numbers of lookups.
    #[error("{name} looks up {lookups} rows for {bags} bags: lookups must be a multiple of bags")]
    UnevenLookups {
        /// The table.
        name: String,
        /// Lookups of all its bags.
        lookups: u64,
        /// Its bags.
        bags: u64,
    },
    /// No two embedding bags can be merged.
    #[error("needs two embedding bags of the same batch, width, mode and type: no two of {found} are alike")]
    NoBags {
        /// Number of embedding bags.
        found: usize,
    },
    /// The bags do not run the same ops.
    #[error("{op} does not run the same ops for each bag")]
    BagsDiffer {
        /// The op of the first bag.
        op: String,
    },
    /// The lookups of a bag are computed in the step.
    #[error("{op} computes the lookups of a bag within the step: inputs of bags cannot be joined beforehand")]
    BagInput {
        /// The op.
        op: String,
    },
    /// A table or lookups of a bag are used outside of the bag.
    #[error("{op} also takes a bag's tensor of shape {shape:?}")]
    BagShared {
        /// The op outside of the bag.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// Optimizer with unknown ops.
    #[error("unknown optimizer {name}: supported are SGD, Adam, AdamW, Adagrad and RMSprop")]
    UnknownOptimizer {
        /// Its name.
        name: String,
    },
    /// Optimizer that ran unexpected ops.
    #[error("{name} ran unexpected ops: {ops}")]
    UnknownUpdate {
        /// Its name.
        name: String,
        /// The first ops.
        ops: String,
    },
    /// Parameters with sparse gradients.
    #[error(
        "{name} has sparse gradients: PyTorch updates them tensor by tensor and rejects fused=True; sparse=False makes them dense"
    )]
    SparseGradients {
        /// The optimizer.
        name: String,
    },
    /// Optimizer without a fused form in PyTorch.
    #[error("PyTorch has no fused form of {name}")]
    NoFusedForm {
        /// The optimizer.
        name: String,
    },
}
