//! Kernels that are mostly matrix products.

use super::Pass;

/// How numbers are multiplied.
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
    /// Products.
    pub batch: u64,
    /// Rows of C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// The summed dimension.
    pub k: u64,
    /// Whether A is stored column by column (as PyTorch sees it, row-major being the rule).
    pub a_transposed: bool,
    /// Whether B is stored column by column.
    pub b_transposed: bool,
    /// Leading dimensions in elements.
    pub lda: u64,
    /// Of B.
    pub ldb: u64,
    /// What is added.
    pub epilogue: Epilogue,
    /// How numbers are multiplied.
    pub precision: Precision,
}

/// What a matrix product does beside multiplying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// Nothing.
    None,
    /// Adds a vector to every row.
    Bias,
    /// Adds a matrix.
    Matrix,
    /// Adds a vector and applies an activation.
    BiasActivation,
}

/// A convolution; 1-d and 2-d ones have leading spatial sizes of 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conv {
    /// The forward pass, or gradients of (input, weight, bias).
    pub gradients: Option<[bool; 3]>,
    /// Batch.
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
    /// Strides.
    pub stride: [u64; 3],
    /// Paddings.
    pub padding: [u64; 3],
    /// Dilations.
    pub dilation: [u64; 3],
    /// Groups.
    pub groups: u64,
    /// Whether it is a transposed convolution.
    pub transposed: bool,
    /// Whether the input has its channels next to one another.
    pub channels_last: bool,
    /// Whether a bias is added by the same op.
    pub bias: bool,
    /// Number of spatial dimensions.
    pub dims: u8,
    /// How numbers are multiplied.
    pub precision: Precision,
}

impl Conv {
    /// Whether each channel has filters of its own.
    #[must_use]
    pub const fn is_depthwise(groups: u64, channels_in: u64) -> bool {
        groups > 1 && groups == channels_in
    }
}

/// Which implementation of attention.
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
    /// Pass.
    pub pass: Pass,
    /// Batch.
    pub batch: u64,
    /// Query heads.
    pub heads: u64,
    /// Queries.
    pub queries: u64,
    /// Keys.
    pub keys: u64,
    /// Dimension of a head.
    pub dim: u64,
    /// Dimension of a value's head.
    pub value_dim: u64,
    /// Whether a query sees only the keys before it.
    pub causal: bool,
    /// Whether a bias or mask is added.
    pub bias: bool,
    /// Whether some are dropped.
    pub dropout: bool,
    /// How numbers are multiplied.
    pub precision: Precision,
}

/// A recurrent network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rnn {
    /// Pass.
    pub pass: Pass,
    /// Gates: 4 for LSTM, 3 for GRU, 1 for plain.
    pub gates: u64,
    /// Steps in time.
    pub steps: u64,
    /// Batch.
    pub batch: u64,
    /// Input size.
    pub input: u64,
    /// Hidden size.
    pub hidden: u64,
    /// Layers.
    pub layers: u64,
    /// 2 where bidirectional, else 1.
    pub directions: u64,
    /// How numbers are multiplied.
    pub precision: Precision,
}

impl Rnn {
    /// Whether PyTorch asks cuDNN for one kernel a layer that keeps the weights on chip through all steps: for a small
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

/// The dot products of every pair of a sample's vectors, behind its first vector, or their gradient: our own kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interaction {
    /// Pass.
    pub pass: Pass,
    /// Samples.
    pub batch: u64,
    /// Vectors of a sample, the dense one among them.
    pub features: u64,
    /// Their length.
    pub dim: u64,
}

impl Interaction {
    /// Pairs of different vectors of a sample.
    #[must_use]
    pub const fn pairs(&self) -> u64 {
        self.features.saturating_mul(self.features.saturating_sub(1)) / 2
    }
}

/// A sparse matrix times a dense one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseProduct {
    /// Rows of the sparse matrix.
    pub rows: u64,
    /// Its columns: rows of the dense one.
    pub inner: u64,
    /// Columns of the dense one.
    pub columns: u64,
    /// Entries of the sparse one.
    pub entries: u64,
    /// Bytes an index.
    pub index_bytes: u64,
}
