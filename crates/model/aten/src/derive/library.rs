//! Calls of cuBLAS and cuDNN: the kernel that they choose, and thus the way of launching it, is not known in advance.
//! These rules return the sequence recorded most often on an H200 for similar shapes.

use steptime_graph::names::cuda::{
    CAPTURING, DEVICE_ATTRIBUTE, DRIVER_LAUNCH, DRIVER_LAUNCH_EX, ERROR, EVENT_RECORD, FUNCTION_ATTRIBUTES,
    LAUNCH, LAUNCH_EX, MEMSET, PEEK, SET_FUNCTION_ATTRIBUTE, STREAM_WAIT,
};

use crate::kernel::{Attention, AttentionKind, BatchNorm, Conv, Epilogue, Gemm, Pass, Precision};

/// Rows and columns of the tile of C that a block computes.
const TILE: u64 = 128;

/// Calls of a CUTLASS kernel that cuDNN or cuBLAS launch through the driver.
const CUTLASS: [&str; 2] = [DEVICE_ATTRIBUTE, DRIVER_LAUNCH];
/// Calls of a layout change by cuDNN.
const LAYOUT: [&str; 2] = [LAUNCH, ERROR];
/// Calls of cuDNN's kernel between two layout changes.
const BETWEEN: [&str; 5] = [PEEK, FUNCTION_ATTRIBUTES, FUNCTION_ATTRIBUTES, LAUNCH_EX, PEEK];

/// Returns the calls of a product: a matrix by a vector, a kernel that splits a long sum if C is small, or otherwise one kernel.
pub(super) fn product(gemm: &Gemm, children: &[&str]) -> Vec<&'static str> {
    let vector = (gemm.m == 1 || gemm.n == 1) && gemm.k > 1 && gemm.batch == 1;
    let tiles = gemm.batch * gemm.m.div_ceil(TILE) * gemm.n.div_ceil(TILE);
    let splits = (gemm.k >= 512 && tiles <= 16) || (gemm.k >= 1024 && tiles <= 64);
    match gemm.epilogue {
        // The bias is copied to the output first.
        _ if children.contains(&"aten::expand") => vec![LAUNCH; 2],
        _ if matches!(gemm.precision, Precision::Bf16 | Precision::F16) => vec![DRIVER_LAUNCH_EX],
        _ if vector => vec![LAUNCH],
        Epilogue::None if gemm.k == 1 => CUTLASS.to_vec(),
        Epilogue::None if splits => [&CUTLASS[..], &[LAUNCH_EX]].concat(),
        _ => vec![LAUNCH_EX],
    }
}

/// Whether each channel has its own filter: PyTorch has a kernel for it if channels are not last.
fn depthwise(conv: &Conv) -> bool {
    Conv::is_depthwise(conv.groups, conv.channels_in) && !conv.transposed && !conv.channels_last
}

/// Whether cuDNN computes a convolution in the given layout: channels last, without tensor cores, or with a
/// filter of one point, unless rows of many channels are misaligned.
fn direct(conv: &Conv) -> bool {
    let point = conv.filter.iter().all(|&size| size == 1) && conv.stride.iter().all(|&step| step == 1);
    let aligned = conv.input.iter().product::<u64>().is_multiple_of(4);
    let simple = matches!(conv.precision, Precision::F32 | Precision::F64);
    conv.channels_last || simple || (point && (aligned || conv.channels_in < 512))
}

/// Returns the calls of the forward pass, or of the gradient of the data: the layout of a filter larger than one point is changed too.
pub(super) fn convolution(conv: &Conv) -> Vec<&'static str> {
    if conv.gradients.is_some_and(|[data, ..]| !data) {
        return Vec::new();
    }
    if depthwise(conv) {
        return vec![LAUNCH];
    }
    if direct(conv) {
        return CUTLASS.to_vec();
    }
    let point = conv.filter.iter().all(|&size| size == 1);
    let before = LAYOUT.repeat(if point { 1 } else { 2 });
    [&before, &BETWEEN[..], &LAYOUT].concat()
}

/// Returns the calls of the gradient of the weight: the sum over the batch is split and added up.
pub(super) fn weight_gradient(conv: &Conv) -> Vec<&'static str> {
    if conv.gradients.is_some_and(|[_, weight, _]| !weight) {
        return Vec::new();
    }
    if depthwise(conv) {
        return vec![LAUNCH];
    }
    if direct(conv) {
        return [&CUTLASS[..], &LAYOUT].concat();
    }
    let point = conv.filter.iter().all(|&size| size == 1);
    let main = [PEEK, LAUNCH_EX, FUNCTION_ATTRIBUTES, FUNCTION_ATTRIBUTES, LAUNCH_EX, PEEK];
    let after: &[&str] = if point { &[] } else { &LAYOUT };
    [&LAYOUT.repeat(2), &main[..], after].concat()
}

/// Maximum number of elements of a channel that cuDNN's batch norm keeps on chip: forward, and backward, which has twice the
/// tensors.
const ON_CHIP: [u64; 2] = [32_768, 16_384];

/// Returns the calls of cuDNN's batch norm: its persistent kernel if a channel fits on the chip.
pub(super) fn batch_norm(norm: &BatchNorm) -> Vec<&'static str> {
    let most = ON_CHIP[usize::from(norm.pass == Pass::Backward)];
    if norm.batch.saturating_mul(norm.spatial) <= most {
        vec![SET_FUNCTION_ATTRIBUTE, ERROR, LAUNCH, ERROR, ERROR]
    } else {
        vec![LAUNCH, ERROR]
    }
}

/// Returns the calls of attention: those before any child op, and those after all. Forward it is one kernel, backward three (cuDNN,
/// FlashAttention) or one.
pub(super) fn attention(of: &Attention) -> (Vec<&'static str>, Vec<&'static str>) {
    match (of.kind, of.pass) {
        (AttentionKind::Efficient, Pass::Forward) => (vec![CAPTURING], vec![LAUNCH]),
        (AttentionKind::Efficient, Pass::Backward) => {
            (Vec::new(), vec![SET_FUNCTION_ATTRIBUTE, FUNCTION_ATTRIBUTES, LAUNCH])
        }
        (AttentionKind::Cudnn, Pass::Forward) => (Vec::new(), vec![MEMSET, ERROR, DRIVER_LAUNCH_EX, ERROR]),
        (AttentionKind::Cudnn, Pass::Backward) => {
            (Vec::new(), vec![MEMSET, ERROR, DRIVER_LAUNCH_EX, DRIVER_LAUNCH_EX, ERROR, DRIVER_LAUNCH_EX])
        }
        (AttentionKind::Flash, Pass::Forward) => (Vec::new(), vec![LAUNCH]),
        (AttentionKind::Flash, Pass::Backward) => (Vec::new(), vec![LAUNCH; 3]),
    }
}

/// Returns the calls of a cell of cuDNN's recurrent networks, at one step and layer: its product, whose counters are cleared first, and its
/// pointwise part. Backward there are also events for the stream that computes the gradient of the weights.
pub(super) fn cell(pass: Pass) -> Vec<&'static str> {
    let product = [DEVICE_ATTRIBUTE, MEMSET, DRIVER_LAUNCH];
    let rest: &[&str] = match pass {
        Pass::Backward => {
            &[ERROR, EVENT_RECORD, ERROR, ERROR, EVENT_RECORD, ERROR, STREAM_WAIT, LAUNCH, ERROR]
        }
        _ => &[LAUNCH, ERROR],
    };
    [&product[..], rest].concat()
}
