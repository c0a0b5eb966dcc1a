//! Changes by name, and the order in which their rules are applied.

use steptime_aten::optimizer::Form;
use steptime_rewrite::{
    Accumulate, Bf16, ChannelsLast, Checkpoint, ConcatInPlace, CudaGraph, DataParallel, Fbgemm, Fp16,
    FuseAmong, FuseBiasGradients, FuseCasts, FuseCrossEntropy, FuseEmbeddingBags, FuseLinear, FusePointwise,
    Fusion, NoSync, Operators, Optimizer, PrefetchInputs, Remove, Reorder, ResizeBatch, Rule, SecondStream,
    Selection, SetSize, Streams, Tf32,
};

/// Changes of a step, in no order. [`Changes::rules`] returns their rules in the order in which they are applied.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Ops to remove.
    pub remove: Vec<Selection>,
    /// Another number of samples.
    pub batch: Option<ResizeBatch>,
    /// Sizes of the model.
    pub sizes: Vec<SetSize>,
    /// Ops to fuse.
    pub fuse: Vec<Fuse>,
    /// The ops that fusions other than the optimizer's are restricted to; all where empty.
    pub among: Vec<Selection>,
    /// Operators in place of PyTorch's.
    pub operators: Option<OperatorLibrary>,
    /// Precision of matrix products.
    pub precision: Option<Precision>,
    /// Images in the channels-last memory format.
    pub channels_last: bool,
    /// Batches in pinned memory, the next one copied during the step before.
    pub prefetch_inputs: bool,
    /// Inputs copied right before their first use.
    pub reorder: bool,
    /// No copies of scalars back from the device.
    pub no_sync: bool,
    /// Activations recomputed in the backward pass.
    pub checkpoint: Option<Checkpoint>,
    /// Ops to run on a stream of their own.
    pub on_stream: Vec<Selection>,
    /// Number of parallel streams.
    pub streams: Option<usize>,
    /// Number of batches before each update.
    pub accumulate: Option<u32>,
    /// Number of ranks that average their gradients.
    pub data_parallel: Option<u32>,
    /// As much of the step as possible captured as a CUDA graph.
    pub cuda_graph: bool,
}

/// Fusions of ops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fuse {
    /// Embedding bags.
    EmbeddingBags,
    /// The optimizer's ops.
    Optimizer,
    /// Chains of elementwise ops.
    Elementwise,
    /// Linear layers with the ReLU after them.
    Linear,
    /// Casts of autocast, in the kernels beside them.
    Casts,
    /// Gradients of biases, with the slope of the ReLU before them.
    BiasGradients,
    /// Cross entropies of scores, in one pass over the scores each way.
    CrossEntropy,
    /// Concatenations, whose inputs are stored within the results.
    Concat,
}

/// Libraries of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorLibrary {
    /// Those of `steptime.operators`.
    Steptime,
    /// FBGEMM's table-batched embeddings.
    Fbgemm,
}

/// Precisions of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// 32-bit numbers, multiplied with 10 bits of mantissa.
    Tf32,
    /// 16-bit numbers, as under autocast.
    Bf16,
    /// The same with 5 bits of exponent.
    Fp16,
}

impl Changes {
    /// Returns the rules of the changes, in their order of application.
    #[must_use]
    pub fn rules(&self) -> Vec<Box<dyn Rule>> {
        let mut rules: Vec<Box<dyn Rule>> = Vec::new();
        if !self.remove.is_empty() {
            rules.push(Box::new(Remove { ops: self.remove.clone() }));
        }
        if let Some(batch) = &self.batch {
            rules.push(Box::new(batch.clone()));
        }
        for size in &self.sizes {
            rules.push(Box::new(size.clone()));
        }
        for &fuse in &self.fuse {
            rules.push(fused(fuse, &self.among));
        }
        match self.operators {
            Some(OperatorLibrary::Steptime) => rules.push(Box::new(Operators)),
            Some(OperatorLibrary::Fbgemm) => rules.push(Box::new(Fbgemm)),
            None => {}
        }
        match self.precision {
            Some(Precision::Tf32) => rules.push(Box::new(Tf32)),
            Some(Precision::Bf16) => rules.push(Box::new(Bf16)),
            Some(Precision::Fp16) => rules.push(Box::new(Fp16)),
            None => {}
        }
        if self.channels_last {
            rules.push(Box::new(ChannelsLast));
        }
        if self.prefetch_inputs {
            rules.push(Box::new(PrefetchInputs));
        }
        if self.reorder {
            rules.push(Box::new(Reorder));
        }
        if self.no_sync {
            rules.push(Box::new(NoSync));
        }
        if let Some(checkpoint) = &self.checkpoint {
            rules.push(Box::new(checkpoint.clone()));
        }
        if !self.on_stream.is_empty() {
            rules.push(Box::new(SecondStream { ops: self.on_stream.clone() }));
        }
        if let Some(count) = self.streams {
            rules.push(Box::new(Streams { count }));
        }
        if let Some(batches) = self.accumulate {
            rules.push(Box::new(Accumulate { batches }));
        }
        if let Some(ranks) = self.data_parallel {
            rules.push(Box::new(DataParallel::new(ranks)));
        }
        if self.cuda_graph {
            rules.push(Box::new(CudaGraph));
        }
        rules
    }
}

/// Returns the rule of a fusion, of all ops or of some.
fn fused(fuse: Fuse, among: &[Selection]) -> Box<dyn Rule> {
    let what = match fuse {
        Fuse::Optimizer => return Box::new(Optimizer { form: Form::Fused }),
        Fuse::Casts => return Box::new(FuseCasts),
        Fuse::BiasGradients => return Box::new(FuseBiasGradients),
        Fuse::CrossEntropy => return Box::new(FuseCrossEntropy),
        Fuse::Concat => return Box::new(ConcatInPlace),
        Fuse::EmbeddingBags if among.is_empty() => return Box::new(FuseEmbeddingBags),
        Fuse::Elementwise if among.is_empty() => return Box::new(FusePointwise),
        Fuse::Linear if among.is_empty() => return Box::new(FuseLinear),
        Fuse::EmbeddingBags => Fusion::EmbeddingBags,
        Fuse::Elementwise => Fusion::Elementwise,
        Fuse::Linear => Fusion::Linear,
    };
    Box::new(FuseAmong { what, ops: among.to_vec() })
}
