//! Launches of an op, with typed parameters: the vocabulary shared by ops and cost models.
//!
//! One [`KernelCall`] represents everything that an op launches itself (not through child ops): most often one
//! kernel, for a convolution also the layout changes before and after it. Its time is the sum of their times.

mod elements;
mod lookups;
mod products;

use smallvec::SmallVec;

use crate::dtype::Dtype;

pub use elements::{
    BatchNorm, Concat, Elementwise, Layout, Loss, MultiTensor, Norm, NormKind, Pool, PoolKind, Reduce,
    Softmax, Sort, Steps, Transfer, TransferDirection, Work,
};
pub use lookups::{
    Coalesce, EmbeddingBag, FusedBags, FusedTable, Gather, GatherKind, Pooling, RowOptimizer, Scatter,
    ScatterKind, TableBatched, TiledGather,
};
pub use products::{
    Attention, AttentionKind, Conv, Epilogue, Gemm, Interaction, Precision, Rnn, SparseProduct,
};

/// Maximum memory of a kernel call, in bytes: no GPU has that much.
const MOST_BYTES: u64 = 1 << 44;
/// Maximum operations of a kernel call: an hour or more on any GPU.
const MOST_FLOPS: u64 = 1 << 62;

/// Everything that an op launches itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelCall {
    /// Computation.
    pub kernel: Kernel,
    /// Type of the computation: that of the main operand.
    pub dtype: Dtype,
    /// Memory that it accesses.
    pub operands: SmallVec<[Operand; 4]>,
    /// Arithmetic operations; a multiply-add counts as two.
    pub flops: u64,
    /// Number of activities that it launches, as far as it is known in advance.
    pub launches: u32,
}

/// Memory that a kernel accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Argument, return or scratch memory.
    pub slot: Slot,
    /// Read, written, or both.
    pub role: Role,
    /// Distinct bytes accessed.
    pub bytes: u64,
}

/// Argument or return of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Tensor of an argument: the argument, and the position in its list.
    Input(u16, u16),
    /// Tensor of a return: the return, and the position in its list.
    Output(u16, u16),
    /// Scratch memory of the kernel.
    Scratch,
}

/// Access to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Only read.
    Read,
    /// Only written.
    Write,
    /// Read and written.
    Update,
}

/// Computation of a kernel. Sizes are in elements unless noted.
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
    /// Dot products of a sample's vectors with one another (this project's kernel).
    Interaction(Interaction),
    /// A sparse matrix times a dense one.
    SparseProduct(SparseProduct),
    /// Pooled lookups in one table.
    EmbeddingBag(EmbeddingBag),
    /// Pooled lookups in many tables at once (FBGEMM), the backward fused with the optimizer.
    TableBatched(TableBatched),
    /// Pooled lookups in many tables at once (this project's kernels), the backward fused with the optimizer.
    FusedBags(FusedBags),
    /// Reads of whole rows, or single elements, by index.
    Gather(Gather),
    /// Reads of whole rows by index (this project's kernel), in an order chosen for the cache.
    TiledGather(TiledGather),
    /// Additions or writes of rows, or single elements, by index.
    Scatter(Scatter),
    /// Coalescing of sparse tensors.
    Coalesce(Coalesce),
    /// One output element at a time from few input elements.
    Elementwise(Elementwise),
    /// Sums and other reductions along dimensions.
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
    /// Fill of memory with a byte.
    Memset,
    /// Unknown op, with its bytes as cost.
    Unknown,
}

/// Direction through a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Outputs from inputs.
    Forward,
    /// Gradients from outputs' gradients.
    Backward,
}

impl Kernel {
    /// Returns the name of the family, the key of models and scores.
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

    /// Returns the precision of matrix multiplication; `None` if the kernel multiplies no matrices.
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
    /// Returns the calls that this one consists of, each with its own cost: a convolution's gradients of input and weight
    /// are computed one after the other by independent kernels. `None` if the
    /// call is one piece. Each part comes with the positions of its operands among this call's.
    #[must_use]
    pub fn parts(&self) -> Option<[(KernelCall, SmallVec<[usize; 4]>); 2]> {
        let Kernel::Conv(conv) = &self.kernel else { return None };
        let Some([true, true, _]) = conv.gradients else { return None };
        // The input gradient reads the output's gradient and the weight; the weight gradient reads the output's gradient and the input.
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

    /// Returns the bytes read: of operands that are read or updated.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.sum(|role| role != Role::Write)
    }

    /// Returns the bytes written: of operands that are written or updated.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sum(|role| role != Role::Read)
    }

    /// Whether a GPU could run it: it accesses less memory than the limit, and takes less than an hour on any GPU.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.footprint() <= MOST_BYTES && self.flops <= MOST_FLOPS
    }

    /// Returns the distinct bytes accessed in total.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.sum(|_| true)
    }

    fn sum(&self, counts: impl Fn(Role) -> bool) -> u64 {
        self.operands.iter().filter(|o| counts(o.role)).fold(0, |sum: u64, o| sum.saturating_add(o.bytes))
    }
}
