//! Changes of a training step, one rule per file.
//!
//! ```text
//! StepIr ──rule: Rule──> Patch ──StepIr::apply──> StepIr, and an Audit of the changes with their reasons
//! ```
//!
//! Rules compose: [`apply`] applies them in the order of their [`Stage`]s, each to the result of the previous one.
#![forbid(unsafe_code)]

mod accumulate;
mod bf16;
mod bias_gradients;
mod blocks;
mod channels_last;
mod checkpoint;
mod concat_in_place;
mod counted;
mod cross_entropy;
mod cuda_graph;
mod data_parallel;
mod derive;
mod direct_exchanges;
mod error;
mod exchange;
mod findings_cache;
mod fully_sharded;
mod fuse_among;
mod fuse_bags;
mod fuse_casts;
mod fuse_linear;
mod fuse_pointwise;
mod host_copy;
mod in_place;
mod nested_uses;
mod new_ops;
mod no_sync;
mod operators;
mod optimizer;
mod parallel_graph;
mod passes;
mod prefetch;
mod remove;
mod reorder;
mod repeated_tensors;
mod resize;
mod resize_batch;
mod rule;
mod rule_order;
mod runtime_kernels;
mod selection;
mod set;
mod shard_tables;
mod sharded_optimizer;
mod staged_inputs;
mod streams;
mod tensor_groups;
mod tf32;
mod updates;

use steptime_aten::optimizer::Form;

pub use accumulate::Accumulate;
pub use bf16::{Bf16, Fp16};
pub use bias_gradients::FuseBiasGradients;
pub use blocks::Blocks;
pub use channels_last::ChannelsLast;
pub use checkpoint::Checkpoint;
pub use concat_in_place::ConcatInPlace;
pub use cross_entropy::FuseCrossEntropy;
pub use cuda_graph::CudaGraph;
pub use data_parallel::DataParallel;
pub use derive::Derive;
pub use direct_exchanges::DirectExchanges;
pub use error::{Error, RuleError};
pub use findings_cache::{FindingsCache, UnchangedStep};
pub use fully_sharded::FullySharded;
pub use fuse_among::{FuseAmong, Fusion};
pub use fuse_bags::FuseEmbeddingBags;
pub use fuse_casts::FuseCasts;
pub use fuse_linear::FuseLinear;
pub use fuse_pointwise::FusePointwise;
pub use no_sync::NoSync;
pub use operators::{DenseOperators, Fbgemm, Operators};
pub use optimizer::Optimizer;
pub use parallel_graph::ParallelGraph;
pub use prefetch::PrefetchInputs;
pub use remove::Remove;
pub use reorder::Reorder;
pub use resize::BatchDims;
pub use resize_batch::ResizeBatch;
pub use rule::{Audit, Facts, Rule, applied, apply};
pub use rule_order::Stage;
pub use runtime_kernels::RuntimeKernels;
pub use selection::Selection;
pub use set::{SetSize, SizePath, sized};
pub use shard_tables::{PlacedTable, ShardTables, TableHome, tables};
pub use sharded_optimizer::ShardedOptimizer;
pub use staged_inputs::StagedInputs;
pub use streams::{SecondStream, Streams};
pub use tf32::Tf32;

/// Rules without a numeric parameter that apply alone and to PyTorch's kernels: those that are tried in a search for speedups.
#[must_use]
pub fn all() -> Vec<Box<dyn Rule>> {
    vec![
        Box::new(FuseEmbeddingBags),
        Box::new(Operators),
        Box::new(Fbgemm),
        Box::new(FusePointwise),
        Box::new(FuseLinear),
        Box::new(Optimizer { form: Form::Fused }),
        Box::new(Tf32),
        Box::new(Bf16),
        Box::new(ChannelsLast),
        Box::new(PrefetchInputs),
        Box::new(Reorder),
        Box::new(NoSync),
        Box::new(CudaGraph),
    ]
}
