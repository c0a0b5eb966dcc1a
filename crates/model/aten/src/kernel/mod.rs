//! What an op launches, with typed parameters: the vocabulary that ops and cost models share.
//!
//! One [`KernelCall`] stands for everything an op launches by itself (not through child ops): most often one
//! kernel, for a convolution also the layout changes before and after it. Its time is the sum of theirs.

mod elements;
mod lookups;
mod products;

use smallvec::SmallVec;

use crate::dtype::Dtype;

pub use elements::{
    BatchNorm, Concat, Direction, Elementwise, Layout, Loss, MultiTensor, Norm, NormKind, Pool, PoolKind,
    Reduce, Softmax, Sort, Steps, Transfer, Work,
};
pub use lookups::{
    Coalesce, EmbeddingBag, FusedBags, FusedTable, Gather, GatherKind, Pooling, RowOptimizer, Scatter,
    ScatterKind, TableBatched, TiledGather,
};
pub use products::{
    Attention, AttentionKind, Conv, Epilogue, Gemm, Interaction, Precision, Rnn, SparseProduct,
};

/// The most memory of a kernel call, in bytes: no GPU has as much.
const MOST_BYTES: u64 = 1 << 44;
/// The most operations of a kernel call: an hour or more of any GPU.
const MOST_FLOPS: u64 = 1 << 62;

/// Everything an op launches by itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelCall {
    /// What it computes.
    pub kernel: Kernel,
    /// The type computed in: that of the main operand.
    pub dtype: Dtype,
    /// The memory it touches.
    pub operands: SmallVec<[Operand; 4]>,
    /// Arithmetic operations; a multiply-add counts as two.
    pub flops: u64,
    /// How many activities it launches, as far as is known beforehand.
    pub launches: u32,
}

/// A piece of memory that a kernel touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Whose it is.
    pub slot: Slot,
    /// Read, written, or both.
    pub role: Role,
    /// Distinct bytes touched.
    pub bytes: u64,
}

/// Which argument or return an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// A tensor of an argument: the argument, and the place in its list.
    Input(u16, u16),
    /// A tensor of a return: the return, and the place in its list.
    Output(u16, u16),
    /// Memory of its own.
    Scratch,
}

/// What happens to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Read.
    Read,
    /// Written.
    Write,
    /// Read and written.
    Update,
}

/// What a kernel computes. Sizes are in elements unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Matrix products, batched or not.
    Gemm(Gemm),
    /// Convolutions and their gradients.
    Conv(Conv),
    /// Fused scaled-dot-product attention.
    Attention(Attention),
    /// cuDNN's recurrent networks.
    Rnn(Rnn),
    /// Dot products of a sample's vectors with one another (ours).
    Interaction(Interaction),
    /// A sparse matrix times a dense one.
    SparseProduct(SparseProduct),
    /// Pooled lookups in one table.
    EmbeddingBag(EmbeddingBag),
    /// Pooled lookups in many tables at once (FBGEMM), the backward fused with the optimizer.
    TableBatched(TableBatched),
    /// Pooled lookups in many tables at once (ours), the backward fused with the optimizer.
    FusedBags(FusedBags),
    /// Whole rows, or single elements, taken by index.
    Gather(Gather),
    /// Whole rows taken by index (ours), in an order chosen by the cache.
    TiledGather(TiledGather),
    /// Rows, or single elements, added or written by index.
    Scatter(Scatter),
    /// Sparse tensors coalesced.
    Coalesce(Coalesce),
    /// One output element at a time from few input elements.
    Elementwise(Elementwise),
    /// Sums and the like along dimensions.
    Reduce(Reduce),
    /// Running sums.
    Scan(Sort),
    /// Sorting, unique, top-k.
    Sort(Sort),
    /// Softmax, log-softmax.
    Softmax(Softmax),
    /// Layer, group, RMS norm.
    Norm(Norm),
    /// Batch norm.
    BatchNorm(BatchNorm),
    /// Pooling and resampling.
    Pool(Pool),
    /// Negative log likelihood.
    Loss(Loss),
    /// Concatenation.
    Concat(Concat),
    /// One op over a list of tensors: foreach, fused optimizers.
    MultiTensor(MultiTensor),
    /// Copies between host and device.
    Transfer(Transfer),
    /// Copies within the device by the copy engine's path (contiguous, same type).
    DeviceCopy,
    /// Memory set to a byte.
    Memset,
    /// An op that is not known, priced by its bytes.
    Unknown,
}

/// Which way through a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Outputs from inputs.
    Forward,
    /// Gradients.
    Backward,
}

impl Kernel {
    /// The family, by which models and scores are kept.
    #[must_use]
    pub const fn family(&self) -> &'static str {
        match self {
            Kernel::Gemm(_) => "gemm",
            Kernel::Conv(_) => "convolution",
            Kernel::Attention(_) => "attention",
            Kernel::Rnn(_) => "rnn",
            Kernel::Interaction(_) => "interaction",
            Kernel::SparseProduct(_) => "sparse_product",
            Kernel::EmbeddingBag(_) => "embedding_bag",
            Kernel::TableBatched(_) => "table_batched_embedding",
            Kernel::FusedBags(_) => "fused_embedding_bag",
            Kernel::Gather(_) => "gather",
            Kernel::TiledGather(_) => "tiled_gather",
            Kernel::Scatter(_) => "scatter",
            Kernel::Coalesce(_) => "coalesce",
            Kernel::Elementwise(_) => "elementwise",
            Kernel::Reduce(_) => "reduce",
            Kernel::Scan(_) => "scan",
            Kernel::Sort(_) => "sort",
            Kernel::Softmax(_) => "softmax",
            Kernel::Norm(_) => "norm",
            Kernel::BatchNorm(_) => "batch_norm",
            Kernel::Pool(_) => "pool",
            Kernel::Loss(_) => "loss",
            Kernel::Concat(_) => "concat",
            Kernel::MultiTensor(_) => "multi_tensor",
            Kernel::Transfer(_) => "transfer",
            Kernel::DeviceCopy => "device_copy",
            Kernel::Memset => "memset",
            Kernel::Unknown => "unknown",
        }
    }

    /// The precision in which matrices are multiplied; `None` where none are.
    #[must_use]
    pub const fn precision(&self) -> Option<Precision> {
        match self {
            Kernel::Gemm(gemm) => Some(gemm.precision),
            Kernel::Conv(conv) => Some(conv.precision),
            Kernel::Attention(attention) => Some(attention.precision),
            Kernel::Rnn(rnn) => Some(rnn.precision),
            _ => None,
        }
    }
}

impl KernelCall {
    /// The calls that this one stands for, each priced by itself: a convolution's gradients of input and weight
    /// are computed one after the other by kernels that have nothing to do with one another. `None` where the
    /// call is one piece. With each part come the places of its operands among this call's.
    #[must_use]
    pub fn parts(&self) -> Option<[(KernelCall, SmallVec<[usize; 4]>); 2]> {
        let Kernel::Conv(conv) = &self.kernel else { return None };
        let Some([true, true, _]) = conv.gradients else { return None };
        // The input gradient reads the output's gradient and the weight, the weight's that and the input.
        let part = |gradients, without: [Slot; 2]| {
            let kept =
                self.operands.iter().enumerate().filter(|(_, operand)| !without.contains(&operand.slot));
            let places: SmallVec<[usize; 4]> = kept.clone().map(|(at, _)| at).collect();
            let call = KernelCall {
                kernel: Kernel::Conv(Conv { gradients: Some(gradients), ..*conv }),
                operands: kept.map(|(_, operand)| *operand).collect(),
                flops: self.flops / 2,
                launches: self.launches.div_ceil(2),
                ..self.clone()
            };
            (call, places)
        };
        Some([
            part([true, false, false], [Slot::Input(1, 0), Slot::Output(1, 0)]),
            part([false, true, false], [Slot::Input(2, 0), Slot::Output(0, 0)]),
        ])
    }

    /// Bytes read: operands read or updated.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.sum(|role| role != Role::Write)
    }

    /// Bytes written: operands written or updated.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sum(|role| role != Role::Read)
    }

    /// Whether a GPU could run it: it touches less memory than any has, and takes less than an hour of any.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.footprint() <= MOST_BYTES && self.flops <= MOST_FLOPS
    }

    /// Distinct bytes touched, in all.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.sum(|_| true)
    }

    fn sum(&self, counts: impl Fn(Role) -> bool) -> u64 {
        self.operands.iter().filter(|o| counts(o.role)).fold(0, |sum: u64, o| sum.saturating_add(o.bytes))
    }
}
