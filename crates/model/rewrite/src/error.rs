//! Why a rule does not apply.

/// A rule that does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {source}")]
pub struct Refused {
    /// The rule.
    pub rule: &'static str,
    /// Why.
    pub source: Error,
}

/// Why a rule does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What it made is no step.
    #[error(transparent)]
    Patch(#[from] steptime_step::Error),
    /// There is nothing that it could change.
    #[error("{reason}")]
    NothingToDo {
        /// What it looked for, and what there is instead.
        reason: String,
    },
    /// Tables that are placed, and tables that are looked up.
    #[error(
        "{homes} tables are placed, and the step looks up {tables}: place each, in the order in which they are looked up first"
    )]
    Homes {
        /// How many are placed.
        homes: usize,
        /// How many there are.
        tables: usize,
    },
    /// A table that cannot lie so.
    #[error("table {table} {what}")]
    Home {
        /// Its number.
        table: usize,
        /// What is wrong.
        what: String,
    },
    /// What is looked up comes together with other inputs.
    #[error(
        "{op} takes the input of shape {shape:?}, in which lookups of tables come too: they would be of the samples of all ranks, \
         and what it needs of this rank alone; record the step with an input of its own for the tables"
    )]
    SharedInput {
        /// The op.
        op: String,
        /// The input's shape.
        shape: Vec<i64>,
    },
    /// A job without ranks.
    #[error("a job of 0 ranks: it has at least 1")]
    Ranks,
    /// Words that name no blocks.
    #[error(
        "`{text}` names no blocks: they are modules by their paths, as module:Net.down.*,module:Net.up.*, all so deep inside the model, as \
         depth:2, or the model alone, whole"
    )]
    NoBlocks {
        /// What was said.
        text: String,
    },
    /// Gradients of several backward passes.
    #[error(
        "the recorded step has several backward passes, and not all of them would average their gradients: record a step of one batch, and say \
         --accumulate N beside"
    )]
    SeveralPasses,
    /// Sparse gradients are not averaged.
    #[error(
        "the gradient of the parameter of shape {shape:?} is sparse, and NCCL averages none: place the tables on ranks, \
         or make them sparse=False"
    )]
    SparseAveraged {
        /// The parameter's shape.
        shape: Vec<i64>,
    },
    /// As many streams as make no sense.
    #[error("{asked} streams: it takes 2 to {most}, that of all else among them")]
    Streams {
        /// What was asked for.
        asked: usize,
        /// The most.
        most: usize,
    },
    /// A batch that is none.
    #[error("a batch of {0}: it must be at least 1")]
    Batch(u64),
    /// A batch that the passes of an update cannot share.
    #[error(
        "a batch of {batch} in {passes} passes, whose gradients are added up: it must be a multiple of {passes}"
    )]
    Passes {
        /// Samples of an update.
        batch: u64,
        /// Passes of an update.
        passes: u64,
    },
    /// The recording does not say its batch.
    #[error(
        "the batch that was recorded is not known: its recorder did not write it; say --recorded-batch N"
    )]
    NoBatch,
    /// No tensor has a dimension that is a multiple of the batch.
    #[error(
        "no input of the step has a dimension of {batch}: name one that grows with the batch with --batch-dim"
    )]
    NoBatchDim {
        /// The batch.
        batch: u64,
    },
    /// A size that cannot be counted.
    #[error("{op} would have a dimension of more than 2^63 - 1")]
    TooLarge {
        /// The op.
        op: String,
    },
    /// So many batches are not added up.
    #[error("gradients of {batches} batches: it takes 1 to {most}")]
    Accumulated {
        /// How many.
        batches: u32,
        /// The most.
        most: u32,
    },
    /// What trains after an update would add to gradients of another.
    #[error(
        "{op} trains again after the first update of the step: each update would need batches of its own"
    )]
    SeveralUpdates {
        /// The first op that does.
        op: String,
    },
    /// A size that becomes none.
    #[error("{path} = 0: it must be at least 1")]
    SizeOfNone {
        /// The size.
        path: String,
    },
    /// Words that name no ops.
    #[error(
        "`{text}` names no op: it takes a name, as aten::dropout or aten::*norm*, a number, as ops[17], or a module, as module:DLRM.top"
    )]
    NoSelection {
        /// What was said.
        text: String,
    },
    /// An op that is not there.
    #[error("no op of the step is {text}: `steptime inspect` lists their names, * stands for any letters")]
    NoSuchOp {
        /// What was said.
        text: String,
    },
    /// A module that is not there.
    #[error(
        "the step calls no module {text}: `steptime predict --json` lists its modules, * stands for any letters"
    )]
    NoSuchModule {
        /// What was said.
        text: String,
    },
    /// A module that is called, and whose ops are not known.
    #[error(
        "it is not known which ops module {text} ran: under torch.no_grad only those of the outermost module called are told apart"
    )]
    ModuleWithoutOps {
        /// What was said.
        text: String,
    },
    /// A module of a step of which no module is known.
    #[error(
        "the recording does not say which modules ran its ops: record the step again with this version, without torch.compile"
    )]
    NoModules,
    /// A size of a name that is not known.
    #[error(
        "{path} names no size: there are tables[0].rows, tables[0].columns, tables[0].lookups and layers[0].width; * stands for all"
    )]
    UnknownSize {
        /// What was said.
        path: String,
    },
    /// A table or layer that is not there.
    #[error("{path}: the step has {count} {what} ({ops}), counted from 0")]
    NoSuchPart {
        /// What was said.
        path: String,
        /// What it names.
        what: String,
        /// How many there are.
        count: usize,
        /// The ops that are looked for.
        ops: String,
    },
    /// Bags that differ in how many rows they look up.
    #[error("{name} looks up {lookups} rows for {bags} bags: that is no whole number each")]
    UnevenLookups {
        /// The table.
        name: String,
        /// All its lookups.
        lookups: u64,
        /// Its bags.
        bags: u64,
    },
    /// No two embedding bags can become one.
    #[error("it takes two embedding bags of the same batch, width, mode and type; of {found} no two are")]
    NoBags {
        /// How many there are.
        found: usize,
    },
    /// The bags do not run the same ops.
    #[error("{op} does not run the same ops for each bag")]
    BagsDiffer {
        /// The op of the first bag.
        op: String,
    },
    /// What a bag looks up is made in the step.
    #[error("{op} makes what a bag looks up: its inputs cannot be put together beforehand")]
    BagInput {
        /// The op.
        op: String,
    },
    /// A table, or what a bag looks up, is used by others, too.
    #[error("{op}, too, takes a bag's tensor of shape {shape:?}")]
    BagShared {
        /// The op that is not of the bag.
        op: String,
        /// The tensor's shape.
        shape: Vec<i64>,
    },
    /// An optimizer whose ops are not known.
    #[error("the optimizer {name} is not known: SGD, Adam, AdamW, Adagrad and RMSprop are")]
    UnknownOptimizer {
        /// Its name.
        name: String,
    },
    /// An optimizer that ran other ops than it is known to.
    #[error("{name} ran other ops than it is known to: {ops}")]
    UnknownUpdate {
        /// Its name.
        name: String,
        /// The first ops.
        ops: String,
    },
    /// Tables whose gradients are rows.
    #[error(
        "{name} has sparse gradients: PyTorch then goes tensor by tensor, and refuses to be fused; sparse=False would change it"
    )]
    SparseGradients {
        /// The optimizer.
        name: String,
    },
    /// An optimizer that PyTorch has no fused form of.
    #[error("{name}: PyTorch has no fused form of it")]
    NoFusedForm {
        /// The optimizer.
        name: String,
    },
}
