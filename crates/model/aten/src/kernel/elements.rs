//! Kernels that go through tensors: elementwise, reductions, layers along rows, copies.

use super::Pass;

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
        /// Its two innermost dimensions.
        steps: Steps,
    },
}

/// The two innermost dimensions that a kernel goes through, in the order of its output; zeros where not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Steps {
    /// Their sizes, the inner one first; 0 where there is none.
    pub sizes: [u64; 2],
    /// The largest step that any input makes along each, in elements.
    pub steps: [u64; 2],
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
    /// Elements of one sum that lie together: all of them where `inner` is 1 and nothing lies between.
    pub run: u64,
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
    /// Whether the forward pass reads each row three times: for its maximum, its sum and its result. Other kernels keep it
    /// in registers or shared memory.
    pub again: bool,
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
    /// Channels of a group norm's row; 1 of other norms.
    pub channels: u64,
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
