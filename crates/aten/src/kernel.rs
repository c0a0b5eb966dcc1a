//! What an op launches, with typed parameters: the vocabulary that ops and cost models share.
//!
//! One [`KernelCall`] stands for everything an op launches by itself (not through child ops): most often one
//! kernel, for a convolution also the layout changes before and after it. Its time is the sum of theirs.

use smallvec::SmallVec;

use crate::dtype::Dtype;

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
    /// Pooled lookups in one table.
    EmbeddingBag(EmbeddingBag),
    /// Pooled lookups in many tables at once (FBGEMM), the backward fused with the optimizer.
    TableBatched(TableBatched),
    /// Whole rows, or single elements, taken by index.
    Gather(Gather),
    /// Rows, or single elements, added or written by index.
    Scatter(Scatter),
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

/// Which way through a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Outputs from inputs.
    Forward,
    /// Gradients.
    Backward,
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

/// How rows of a bag are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// Their maximum.
    Max,
    /// Not at all.
    None,
}

/// Pooled lookups in one table, torch's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EmbeddingBag {
    /// Pass.
    pub pass: Pass,
    /// Rows of the table.
    pub rows: u64,
    /// Columns.
    pub dim: u64,
    /// Bags.
    pub bags: u64,
    /// Lookups, all bags together.
    pub lookups: u64,
    /// How rows are pooled.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Bytes an index.
    pub index_bytes: u64,
}

/// An optimizer that updates rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowOptimizer {
    /// Plain SGD.
    Sgd,
    /// Adagrad with one sum a row.
    RowWiseAdagrad,
    /// Adagrad.
    Adagrad,
    /// Adam.
    Adam,
    /// Adam with one second moment a row.
    PartialRowWiseAdam,
    /// Any other.
    Other,
}

/// Pooled lookups in many tables by one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableBatched {
    /// Pass; backward includes the optimizer.
    pub pass: Pass,
    /// Tables.
    pub tables: u64,
    /// Rows, all tables together.
    pub rows: u64,
    /// Columns, all tables together.
    pub dims: u64,
    /// Bags a table.
    pub batch: u64,
    /// Lookups, all tables and bags together.
    pub lookups: u64,
    /// How rows are pooled.
    pub pooling: Pooling,
    /// Whether each lookup has a weight.
    pub weighted: bool,
    /// Of the backward pass.
    pub optimizer: RowOptimizer,
    /// Bytes an index.
    pub index_bytes: u64,
}

/// Which kernel takes by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatherKind {
    /// `gather`: one index for each element, or for each row where the index is expanded.
    Gather,
    /// `index_select`, `embedding`: one index a row.
    IndexSelect,
    /// `index`: several index tensors, one for each leading dimension.
    Index,
    /// `take`, `masked_select` and others.
    Other,
}

/// Rows, or single elements, taken by index: `out[l, :] = source[index[l], :]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gather {
    /// Which kernel.
    pub kind: GatherKind,
    /// Places to take from.
    pub rows: u64,
    /// Indices.
    pub lookups: u64,
    /// Bytes that lie together at each.
    pub row_bytes: u64,
    /// Bytes an index, all index tensors together; distinct ones only.
    pub index_bytes: u64,
}

/// Which kernel puts by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScatterKind {
    /// `index_add_`: atomics.
    IndexAdd,
    /// `scatter_add_`, `scatter`: one index an element.
    Scatter,
    /// `index_put_`, overwriting.
    IndexPut,
    /// `index_put_` with `accumulate`: sorts the indices first.
    IndexPutAccumulate,
    /// `embedding_dense_backward`: sorts the indices first, or few of them by a simpler kernel.
    EmbeddingDense,
    /// `index_copy_`, `index_fill_`, `masked_scatter_` and others.
    Other,
}

/// Rows, or single elements, put by index: `target[index[l], :] += source[l, :]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scatter {
    /// Which kernel.
    pub kind: ScatterKind,
    /// Places to put to.
    pub rows: u64,
    /// Indices.
    pub lookups: u64,
    /// Bytes that lie together at each.
    pub row_bytes: u64,
    /// Bytes an index.
    pub index_bytes: u64,
}

/// What the elements cost to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// A copy, an addition, a comparison.
    Light,
    /// A division, a root, an exponential.
    Medium,
    /// A power, an error function, an integer division.
    Heavy,
    /// Random numbers.
    Random,
}

/// One output element at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Elementwise {
    /// The op's base name, `add`, `threshold_backward`.
    pub op: &'static str,
    /// What an element costs to compute.
    pub work: Work,
    /// Output elements.
    pub numel: u64,
    /// Input tensors.
    pub inputs: u32,
    /// How its operands lie in memory.
    pub layout: Layout,
}

/// How the operands of an elementwise kernel lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// All dense in the same order and aligned: vector loads.
    Vectorized,
    /// All dense in the same order, but misaligned or of mixed types: one element at a time.
    Dense,
    /// Anything else, with offsets computed element by element.
    Strided {
        /// Dimensions left after merging.
        dims: u8,
        /// The fewest elements that lie together in any input that is not broadcast along them.
        run_in: u64,
        /// The elements that lie together in the output.
        run_out: u64,
        /// Whether any input is broadcast.
        broadcast: bool,
    },
}

/// A reduction of `[outer, reduced, inner]` to `[outer, inner]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// The op's base name, `sum`.
    pub op: &'static str,
    /// Sizes before, of, and after the reduced dimensions.
    pub outer: u64,
    /// Elements that become one.
    pub reduced: u64,
    /// Sizes after.
    pub inner: u64,
    /// Whether the input is contiguous.
    pub contiguous: bool,
    /// Whether an element costs more than an addition.
    pub work: Work,
}

/// A sort or scan of `rows` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The op's base name, `sort`.
    pub op: &'static str,
    /// Rows.
    pub rows: u64,
    /// Elements a row.
    pub length: u64,
    /// Bytes a key.
    pub key_bytes: u64,
    /// Bytes carried along with each.
    pub value_bytes: u64,
    /// Elements between neighbours of a row.
    pub stride: u64,
}

/// Softmax along rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Softmax {
    /// Pass.
    pub pass: Pass,
    /// Whether its logarithm.
    pub log: bool,
    /// Rows.
    pub rows: u64,
    /// Elements a row.
    pub length: u64,
    /// Elements between neighbours of a row.
    pub stride: u64,
}

/// Which norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// Layer norm.
    Layer,
    /// RMS norm.
    Rms,
    /// Group norm.
    Group,
}

/// A norm along rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Norm {
    /// Which.
    pub kind: NormKind,
    /// Pass.
    pub pass: Pass,
    /// Rows.
    pub rows: u64,
    /// Elements a row.
    pub length: u64,
    /// Whether there are weights (backward: and their gradients).
    pub affine: bool,
}

/// Batch norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchNorm {
    /// Pass.
    pub pass: Pass,
    /// Whether statistics are of the batch.
    pub training: bool,
    /// Batch.
    pub batch: u64,
    /// Channels.
    pub channels: u64,
    /// Elements a channel and sample.
    pub spatial: u64,
    /// Whether channels lie next to one another.
    pub channels_last: bool,
    /// Whether cuDNN's kernels, else torch's.
    pub cudnn: bool,
}

/// Which pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// Maximum.
    Max,
    /// Average.
    Average,
    /// Average to a given size.
    Adaptive,
    /// Resampling.
    Resample,
}

/// Pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Which.
    pub kind: PoolKind,
    /// Pass.
    pub pass: Pass,
    /// Batch times channels.
    pub planes: u64,
    /// Input height and width.
    pub input: [u64; 2],
    /// Output height and width.
    pub output: [u64; 2],
    /// Window height and width.
    pub window: [u64; 2],
    /// Strides.
    pub stride: [u64; 2],
    /// Whether channels lie next to one another.
    pub channels_last: bool,
}

/// Negative log likelihood of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Loss {
    /// Pass.
    pub pass: Pass,
    /// Rows.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Positions a row and class.
    pub spatial: u64,
}

/// Concatenation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concat {
    /// Tensors.
    pub inputs: u64,
    /// Sizes before the dimension.
    pub outer: u64,
    /// Bytes of one output row: from the dimension on.
    pub row_bytes: u64,
    /// Bytes of the narrowest input's row.
    pub least_bytes: u64,
    /// Of the widest.
    pub most_bytes: u64,
    /// Whether all are contiguous.
    pub contiguous: bool,
    /// Whether all rows are multiples of 16 bytes.
    pub aligned: bool,
}

/// One op over a list of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MultiTensor {
    /// The op's base name, `_foreach_add_`.
    pub op: &'static str,
    /// Tensors in a list.
    pub tensors: u64,
    /// Lists read or written.
    pub lists: u64,
    /// Elements of one list.
    pub numel: u64,
    /// Elements of its largest tensor.
    pub largest: u64,
    /// Chunks of 65,536 elements, the last of each tensor counted whole.
    pub chunks: u64,
    /// Elements that the longest block of each launch goes through, summed over launches.
    pub serial: u64,
    /// What an element costs to compute.
    pub work: Work,
}

/// From where to where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Host to device.
    ToDevice,
    /// Device to host.
    ToHost,
}

/// A copy between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// From where to where.
    pub direction: Direction,
    /// Whether the host's side is page-locked.
    pub pinned: bool,
    /// Bytes.
    pub bytes: u64,
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
            Kernel::EmbeddingBag(_) => "embedding_bag",
            Kernel::TableBatched(_) => "table_batched_embedding",
            Kernel::Gather(_) => "gather",
            Kernel::Scatter(_) => "scatter",
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
}

impl KernelCall {
    /// The calls that this one stands for, each priced by itself: a convolution's gradients of input and weight
    /// are computed one after the other by kernels that have nothing to do with one another. `None` where the
    /// call is one piece. With each part come the places of its operands among this call's.
    #[must_use]
    pub fn parts(&self) -> Option<[(KernelCall, SmallVec<[usize; 4]>); 2]> {
        let Kernel::Conv(conv) = &self.kernel else { return None };
        let Some([true, true, bias]) = conv.gradients else { return None };
        // The input gradient reads the output's gradient and the weight, the weight's that and the input.
        let part = |gradients, without: [Slot; 3]| {
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
            part([true, false, false], [Slot::Input(1, 0), Slot::Output(1, 0), Slot::Output(2, 0)]),
            part([false, true, bias], [Slot::Input(2, 0), Slot::Output(0, 0), Slot::Scratch]),
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

    /// Distinct bytes touched, in all.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        self.sum(|_| true)
    }

    fn sum(&self, counts: impl Fn(Role) -> bool) -> u64 {
        self.operands.iter().filter(|o| counts(o.role)).fold(0, |sum: u64, o| sum.saturating_add(o.bytes))
    }
}
