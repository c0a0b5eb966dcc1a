//! Rules without a numeric parameter.

use steptime_aten::optimizer::Form;

use crate::bf16::Bf16;
use crate::channels_last::ChannelsLast;
use crate::cuda_graph::CudaGraph;
use crate::fuse_bags::FuseEmbeddingBags;
use crate::fuse_linear::FuseLinear;
use crate::fuse_pointwise::FusePointwise;
use crate::no_sync::NoSync;
use crate::operators::{Fbgemm, Operators};
use crate::optimizer::Optimizer;
use crate::prefetch::PrefetchInputs;
use crate::reorder::Reorder;
use crate::rule::Rule;
use crate::tf32::Tf32;

/// All rules without a numeric parameter: those that are tried in a search for speedups.
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
