//! Kernels that mostly multiply matrices.

use super::Pass;

/// Precision of multiplications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 64-bit.
    F64,
    /// 32-bit.
    F32,
    /// 32-bit in memory, 10 bits of mantissa in the product, on tensor cores.
    Tf32,
    /// 16-bit brain float, on tensor cores.
    Bf16,
    /// 16-bit half, on tensor cores.
    F16,
    /// 8-bit float, on tensor cores.
    F8,
    /// 8-bit integer, on tensor cores.
    I8,
}

/// `C[m x n] = A[m x k] B[k x n]`, `batch` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// Number of products.
    pub batch: u64,
    /// Rows of C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// Size of the summed dimension.
    pub k: u64,
    /// Whether A is stored column by column (in PyTorch's view, where row-major is the rule).
    pub a_transposed: bool,
    /// Whether B is stored column by column.
    pub b_transposed: bool,
    /// Leading dimension of A, in elements.
    pub lda: u64,
    /// Leading dimension of B, in elements.
    pub ldb: u64,
    /// Addition fused with the product.
    pub epilogue: Epilogue,
    /// Precision of multiplications.
    pub precision: Precision,
}

/// Operation of a matrix product besides multiplying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// No further operation.
    None,
    /// Adds a vector to every row.
    Bias,
    /// Adds a matrix.
    Matrix,
    /// Adds a vector and applies an activation.
    BiasActivation,
}

/// Convolution; 1-d and 2-d ones have leading spatial sizes of 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conv {
    /// Forward pass if `None`, otherwise gradients of (input, weight, bias).
    pub gradients: Option<[bool; 3]>,
    /// Batch size.
    pub batch: u64,
    /// Input channels.
    pub channels_in: u64,
    /// Output channels.
    pub channels_out: u64,
    /// Input depth, height, width.
    pub input: [u64; 3],
    /// Output depth, height, width.
    pub output: [u64; 3],
    /// Filter depth, height, width.
    pub filter: [u64; 3],
    /// Stride per dimension.
    pub stride: [u64; 3],
    /// Padding per dimension.
    pub padding: [u64; 3],
    /// Dilation per dimension.
    pub dilation: [u64; 3],
    /// Number of groups.
    pub groups: u64,
    /// Whether it is a transposed convolution.
    pub transposed: bool,
    /// Whether the channels of the input are adjacent in memory.
    pub channels_last: bool,
    /// Whether a bias is added by the same op.
    pub bias: bool,
    /// Number of spatial dimensions.
    pub dims: u8,
    /// Precision of multiplications.
    pub precision: Precision,
}

impl Conv {
    /// Whether each channel has its own filters.
    #[must_use]
    pub const fn is_depthwise(groups: u64, channels_in: u64) -> bool {
        groups > 1 && groups == channels_in
    }
}

/// Implementation of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttentionKind {
    /// FlashAttention.
    Flash,
    /// Memory-efficient (CUTLASS).
    Efficient,
    /// cuDNN.
    Cudnn,
}

/// Scaled-dot-product attention in one kernel (two or three backward).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attention {
    /// Implementation.
    pub kind: AttentionKind,
    /// Forward or backward pass.
    pub pass: Pass,
    /// Batch size.
    pub batch: u64,
    /// Number of query heads.
    pub heads: u64,
    /// Number of queries.
    pub queries: u64,
    /// Number of keys.
    pub keys: u64,
    /// Dimension of a head.
    pub dim: u64,
    /// Dimension of a value head.
    pub value_dim: u64,
    /// Whether a query attends only to the keys before it.
    pub causal: bool,
    /// Whether a bias or mask is added.
    pub bias: bool,
    /// Whether dropout is applied.
    pub dropout: bool,
    /// Precision of multiplications.
    pub precision: Precision,
}

/// Recurrent network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rnn {
    /// Forward or backward pass.
    pub pass: Pass,
    /// Number of gates: 4 for LSTM, 3 for GRU, 1 for plain.
    pub gates: u64,
    /// Number of time steps.
    pub steps: u64,
    /// Batch size.
    pub batch: u64,
    /// Input size.
    pub input: u64,
    /// Hidden size.
    pub hidden: u64,
    /// Number of layers.
    pub layers: u64,
    /// 2 if bidirectional, otherwise 1.
    pub directions: u64,
    /// Precision of multiplications.
    pub precision: Precision,
}

impl Rnn {
    /// Whether PyTorch requests one kernel per layer from cuDNN that keeps the weights on chip through all steps: for a small
    /// state, unless sequences are packed (`use_rnn_persist_small_h`).
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        let most = match (self.gates, self.pass) {
            (1, Pass::Backward) => 256,
            (1, _) => 384,
            (_, Pass::Backward) => 128,
            _ => 192,
        };
        self.hidden <= most
    }
}

/// Dot products of every pair of a sample's vectors, appended to its first vector, or their gradient: this project's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interaction {
    /// Forward or backward pass.
    pub pass: Pass,
    /// Number of samples.
    pub batch: u64,
    /// Vectors per sample, including the dense one.
    pub features: u64,
    /// Length of a vector.
    pub dim: u64,
}

impl Interaction {
    /// Returns the number of pairs of different vectors of a sample.
    #[must_use]
    pub const fn pairs(&self) -> u64 {
        self.features.saturating_mul(self.features.saturating_sub(1)) / 2
    }
}

/// Product of a sparse matrix and a dense one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseProduct {
    /// Rows of the sparse matrix.
    pub rows: u64,
    /// Columns of the sparse matrix, and rows of the dense one.
    pub inner: u64,
    /// Columns of the dense matrix.
    pub columns: u64,
    /// Entries of the sparse matrix.
    pub entries: u64,
    /// Bytes per index.
    pub index_bytes: u64,
}
