//! Kernels that process whole tensors: elementwise, reductions, layers along rows, copies.

use super::Pass;

/// Cost class of computing an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// Copy, addition, comparison.
    Light,
    /// Division, root, exponential.
    Medium,
    /// Power, error function, integer division.
    Heavy,
    /// Random numbers.
    Random,
}

/// Elementwise kernel: one output element at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Elementwise {
    /// Base name of the op, `add`, `threshold_backward`.
    pub op: &'static str,
    /// Cost of computing an element.
    pub work: Work,
    /// Number of output elements.
    pub numel: u64,
    /// Number of input tensors.
    pub inputs: u32,
    /// Memory layout of its operands.
    pub layout: Layout,
}

/// Memory layout of the operands of an elementwise kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// All dense in the same order and aligned: vector loads.
    Vectorized,
    /// All dense in the same order, but misaligned or of mixed types: one element at a time.
    Dense,
    /// Any other layout, with offsets computed per element.
    Strided {
        /// Number of dimensions after merging.
        dims: u8,
        /// Minimum number of adjacent elements in an input, over all inputs that are not broadcast along them.
        run_in: u64,
        /// Number of adjacent elements in the output.
        run_out: u64,
        /// Whether an input is broadcast.
        broadcast: bool,
        /// Two innermost dimensions.
        steps: Steps,
    },
}

/// Two innermost dimensions of a kernel, in the order of its output; zeros if not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Steps {
    /// Sizes, the inner one first; 0 if there is no such dimension.
    pub sizes: [u64; 2],
    /// Largest step of any input along each, in elements.
    pub steps: [u64; 2],
}

/// Reduction of `[outer, reduced, inner]` to `[outer, inner]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// Base name of the op, `sum`.
    pub op: &'static str,
    /// Product of the sizes before the reduced dimensions.
    pub outer: u64,
    /// Number of elements that are reduced to one.
    pub reduced: u64,
    /// Product of the sizes after the reduced dimensions.
    pub inner: u64,
    /// Whether the input is contiguous.
    pub contiguous: bool,
    /// Number of adjacent elements of one sum: all of them if `inner` is 1 and there are no gaps.
    pub run: u64,
    /// Cost of computing an element; `Light` for an addition.
    pub work: Work,
}

/// Sort or scan of `rows` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sort {
    /// Base name of the op, `sort`.
    pub op: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// Elements per row.
    pub length: u64,
    /// Bytes per key.
    pub key_bytes: u64,
    /// Bytes moved along with each key.
    pub value_bytes: u64,
    /// Distance between neighbours of a row, in elements.
    pub stride: u64,
}

/// Softmax along rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Softmax {
    /// Forward or backward pass.
    pub pass: Pass,
    /// Whether it is a log-softmax.
    pub log: bool,
    /// Number of rows.
    pub rows: u64,
    /// Elements per row.
    pub length: u64,
    /// Distance between neighbours of a row, in elements.
    pub stride: u64,
    /// Whether the forward pass reads each row three times: for its maximum, its sum and its result. Other kernels keep it
    /// in registers or shared memory.
    pub again: bool,
}

/// Kind of a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// Layer norm.
    Layer,
    /// RMS norm.
    Rms,
    /// Group norm.
    Group,
}

/// Norm along rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Norm {
    /// Kind of the norm.
    pub kind: NormKind,
    /// Forward or backward pass.
    pub pass: Pass,
    /// Number of rows.
    pub rows: u64,
    /// Elements per row.
    pub length: u64,
    /// Channels per row of a group norm; 1 for other norms.
    pub channels: u64,
    /// Whether there are weights (backward: and their gradients).
    pub affine: bool,
}

/// Batch norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchNorm {
    /// Forward or backward pass.
    pub pass: Pass,
    /// Whether statistics of the batch are used.
    pub training: bool,
    /// Batch size.
    pub batch: u64,
    /// Number of channels.
    pub channels: u64,
    /// Elements per channel and sample.
    pub spatial: u64,
    /// Whether channels are adjacent in memory.
    pub channels_last: bool,
    /// Whether the kernel is cuDNN's and not PyTorch's.
    pub cudnn: bool,
}

/// Kind of a pooling.
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

/// Pooling or resampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Kind of the pooling.
    pub kind: PoolKind,
    /// Forward or backward pass.
    pub pass: Pass,
    /// Batch times channels.
    pub planes: u64,
    /// Input height and width.
    pub input: [u64; 2],
    /// Output height and width.
    pub output: [u64; 2],
    /// Window height and width.
    pub window: [u64; 2],
    /// Vertical and horizontal stride.
    pub stride: [u64; 2],
    /// Whether channels are adjacent in memory.
    pub channels_last: bool,
}

/// Negative log likelihood of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Loss {
    /// Forward or backward pass.
    pub pass: Pass,
    /// Number of rows.
    pub rows: u64,
    /// Number of classes.
    pub classes: u64,
    /// Positions per row and class.
    pub spatial: u64,
}

/// Concatenation along one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concat {
    /// Number of input tensors.
    pub inputs: u64,
    /// Product of the sizes before the dimension.
    pub outer: u64,
    /// Bytes of one output row, from the dimension on.
    pub row_bytes: u64,
    /// Bytes per row of the narrowest input.
    pub least_bytes: u64,
    /// Bytes per row of the widest input.
    pub most_bytes: u64,
    /// Whether all are contiguous.
    pub contiguous: bool,
    /// Whether all rows are multiples of 16 bytes.
    pub aligned: bool,
}

/// Op over a list of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MultiTensor {
    /// Base name of the op, `_foreach_add_`.
    pub op: &'static str,
    /// Number of tensors in a list.
    pub tensors: u64,
    /// Number of lists read or written.
    pub lists: u64,
    /// Elements of one list.
    pub numel: u64,
    /// Elements of its largest tensor.
    pub largest: u64,
    /// Number of chunks of 65,536 elements, counting the last one of each tensor as whole.
    pub chunks: u64,
    /// Elements that the longest block of each launch processes, summed over launches.
    pub serial: u64,
    /// Cost of computing an element.
    pub work: Work,
}

/// Direction of a copy between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferDirection {
    /// Host to device.
    ToDevice,
    /// Device to host.
    ToHost,
}

/// Copy between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Direction of the copy.
    pub direction: TransferDirection,
    /// Whether the host memory is page-locked.
    pub pinned: bool,
    /// Bytes copied.
    pub bytes: u64,
}
