//! Runtime calls that an op makes for its kernels, and their positions between its child ops.
//!
//! The sequences were recorded with PyTorch 2.11 and CUDA 13; those of its libraries are in
//! `library.rs`.

use steptime_graph::names::cuda::{self, CAPTURING, DRIVER_LAUNCH, LAUNCH, PEEK};
use steptime_graph::names::{ApiKind, CopyDirection, CopyName, HostMemory, MEMSET};
use steptime_graph::{Blocking, StreamId, StreamSet};
use steptime_trace::{ActivityKind, Nanos};

use super::library;
use crate::call::{Arg, OpCall};
use crate::kernel::{
    Attention, Conv, Kernel, KernelCall, Pass, Rnn, ScatterKind, Transfer, TransferDirection,
};

/// Size in bytes above which a pageable copy is made in chunks: the host waits while the device copies.
const LARGEST_STAGED: u64 = 1 << 20;
/// Minimum number of rows for which columns are summed by several blocks that combine in memory, which is cleared first.
const GLOBAL_REDUCTION: u64 = 1024;
/// Maximum number of cells of a recurrent network that get their own calls, over all steps and layers.
const MOST_CELLS: u64 = 1 << 16;
/// Maximum number of launches of an op that get their own calls. If it has more, these share the time of all.
const MOST_LAUNCHES: u32 = 1 << 12;
/// Number of device activities of a cell: its product, clearing of counters, and its pointwise part.
const KERNELS_OF_A_CELL: usize = 3;
/// Number of cells whose calls represent a layer in one kernel in the backward pass, which has products besides it.
const KERNELS_OF_A_LAYER_BACKWARD: u64 = 3;
/// Maximum number of streams that a recurrent network is spread over.
const MOST_STREAMS: u32 = 4;
/// Time from the return of a copy in chunks to its end on the device: median of 12 recorded on an H200, 4 to 20 µs.
const CHUNKED_TAIL: Nanos = Nanos(12_200);

/// Device work of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Kernel, copy or memset.
    pub kind: ActivityKind,
    /// Name of the copy, or family of the kernel.
    pub name: &'static str,
    /// Bytes copied or set.
    pub bytes: u64,
    /// Stream: 0, or another one that a library uses concurrently.
    pub stream: u32,
}

/// Runtime call that an op will make.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeCall {
    /// Name of the function.
    pub api: &'static str,
    /// Number of child ops that are done before it; `usize::MAX` for all.
    pub after_children: usize,
    /// Device work that it launches.
    pub work: Option<Work>,
    /// Wait of the call for the device.
    pub blocking: Blocking,
}

/// Returns the calls of an op that launches `kernel` itself, in order, given the names of its child ops.
#[must_use]
pub fn derive(op: &OpCall, kernel: &KernelCall, children: &[&str]) -> Vec<RuntimeCall> {
    let count = kernel.launches.clamp(1, MOST_LAUNCHES) as usize;
    let family = kernel.kernel.family();
    let launches = match &kernel.kernel {
        Kernel::Transfer(copy) => return transfer(copy, op),
        Kernel::DeviceCopy => {
            let within = CopyName { direction: CopyDirection::DeviceToDevice, host: HostMemory::Unknown };
            return vec![work(cuda::COPY, ActivityKind::Memcpy, within.text(), bytes(kernel))];
        }
        Kernel::Memset => return vec![work(cuda::MEMSET, ActivityKind::Memset, MEMSET, bytes(kernel))],
        Kernel::Conv(conv) => return convolution(family, conv, children.len()),
        Kernel::Attention(of) => return attention(family, of),
        Kernel::Rnn(rnn) => return recurrent(family, rnn, op),
        Kernel::Gemm(gemm) => library::product(gemm, children),
        Kernel::BatchNorm(norm) if norm.cudnn => library::batch_norm(norm),
        // Launched through the driver; the clearing of a report is not visible as a call in any recording.
        Kernel::FusedBags(bags) => vec![DRIVER_LAUNCH; count - usize::from(bags.update.is_some())],
        Kernel::TiledGather(_) | Kernel::Interaction(_) => vec![DRIVER_LAUNCH; count],
        // Gradient of the data, and gradient of the weights.
        Kernel::Norm(norm) if norm.pass == Pass::Backward && norm.affine => vec![LAUNCH; count.max(2)],
        Kernel::Reduce(sum) if count == 2 || (sum.inner > 1 && sum.reduced >= GLOBAL_REDUCTION) => {
            vec![cuda::MEMSET, LAUNCH]
        }
        Kernel::Scatter(scatter) if scatter.kind == ScatterKind::IndexPutAccumulate && count > 1 => {
            [vec![LAUNCH; count - 1], vec![PEEK, PEEK, LAUNCH]].concat()
        }
        _ if op.name == "aten::native_dropout" => {
            return amid(family, [vec![CAPTURING; 2], vec![LAUNCH; count]].concat(), kernel, children);
        }
        _ => return amid(family, vec![LAUNCH; count], kernel, children),
    };
    sequence(family, launches)
}

/// Returns the calls of PyTorch's own kernels. Child ops that reduce a loss, or that reshape the result of a norm, come after
/// them.
fn amid(
    family: &'static str,
    calls: Vec<&'static str>,
    kernel: &KernelCall,
    children: &[&str],
) -> Vec<RuntimeCall> {
    let mut planned = sequence(family, calls);
    let after = match children {
        [.., "aten::mean" | "aten::sum"] => 1,
        [.., "aten::view", "aten::view"] if matches!(kernel.kernel, Kernel::Norm(_)) => 2,
        _ => 0,
    };
    if after > 0 {
        planned.iter_mut().for_each(|call| call.after_children = children.len() - after);
    }
    planned
}

/// Returns the calls of a convolution. The gradient of the data comes after half of the children, that of the weight after all.
fn convolution(family: &'static str, conv: &Conv, children: usize) -> Vec<RuntimeCall> {
    let mut planned = sequence(family, library::convolution(conv));
    if conv.gradients.is_some() {
        planned.iter_mut().for_each(|call| call.after_children = children / 2);
        planned.extend(sequence(family, library::weight_gradient(conv)));
    }
    planned
}

/// Returns the calls of attention: some come before any child op.
fn attention(family: &'static str, of: &Attention) -> Vec<RuntimeCall> {
    let (before, calls) = library::attention(of);
    let mut planned = sequence(family, before);
    planned.iter_mut().for_each(|call| call.after_children = 0);
    planned.extend(sequence(family, calls));
    planned
}

/// Returns the calls of a recurrent network: of each cell, or of each layer if one kernel keeps the weights and goes through all steps.
fn recurrent(family: &'static str, rnn: &Rnn, op: &OpCall) -> Vec<RuntimeCall> {
    // The lengths of sequences are a list, which is empty if all are equally long.
    let packed = op.inputs.iter().any(|arg| matches!(arg, Arg::Ints(lengths) if !lengths.is_empty()));
    let layers = rnn.layers.saturating_mul(rnn.directions);
    let cells = match (rnn.is_persistent() && !packed, rnn.pass) {
        (false, _) => rnn.steps.saturating_mul(layers),
        (true, Pass::Backward) => layers.saturating_mul(KERNELS_OF_A_LAYER_BACKWARD),
        (true, _) => layers,
    };
    let cells = cells.clamp(1, MOST_CELLS) as usize;
    let mut planned = sequence(family, library::cell(rnn.pass).repeat(cells));
    spread_over_streams(&mut planned, rnn.layers.saturating_mul(rnn.directions));
    planned
}

fn bytes(kernel: &KernelCall) -> u64 {
    kernel.operands.first().map_or(0, |operand| operand.bytes)
}

fn call(api: &'static str) -> RuntimeCall {
    RuntimeCall { api, after_children: usize::MAX, work: None, blocking: Blocking::Never }
}

fn work(api: &'static str, kind: ActivityKind, name: &'static str, bytes: u64) -> RuntimeCall {
    RuntimeCall { work: Some(Work { kind, name, bytes, stream: 0 }), ..call(api) }
}

/// Spreads cells over streams: cuDNN processes several layers concurrently.
fn spread_over_streams(planned: &mut [RuntimeCall], layers: u64) {
    let streams = layers.clamp(1, u64::from(MOST_STREAMS)) as usize;
    let kernels = planned.iter_mut().filter_map(|call| call.work.as_mut());
    for (at, work) in kernels.enumerate() {
        work.stream = (at / KERNELS_OF_A_CELL % streams) as u32;
    }
}

/// Returns calls that come after all children. Their names determine which of them launch.
fn sequence(family: &'static str, calls: Vec<&'static str>) -> Vec<RuntimeCall> {
    let planned = calls.into_iter().map(|api| match ApiKind::from_name(api) {
        ApiKind::Launch => work(api, ActivityKind::Kernel, family, 0),
        ApiKind::Memset => work(api, ActivityKind::Memset, MEMSET, 0),
        _ => call(api),
    });
    planned.collect()
}

/// Returns the calls of a copy between host and device: PyTorch waits for it unless it is non-blocking.
fn transfer(copy: &Transfer, op: &OpCall) -> Vec<RuntimeCall> {
    let direction = match copy.direction {
        TransferDirection::ToDevice => CopyDirection::HostToDevice,
        TransferDirection::ToHost => CopyDirection::DeviceToHost,
    };
    let host = if copy.pinned { HostMemory::Pinned } else { HostMemory::Pageable };
    let name = CopyName { direction, host }.text();
    let chunked =
        copy.direction == TransferDirection::ToDevice && !copy.pinned && copy.bytes > LARGEST_STAGED;
    let mut copying = work(cuda::COPY, ActivityKind::Memcpy, name, copy.bytes);
    if chunked {
        copying.blocking = Blocking::Chunked { lead: None, tail: CHUNKED_TAIL };
    }
    if op.name == "aten::copy_" && op.flag_at(2) == Some(true) {
        return vec![call(CAPTURING), copying];
    }
    let sync = RuntimeCall { blocking: Blocking::Streams(StreamSet::One(StreamId(0))), ..call(cuda::SYNC) };
    // Reading a single number makes other calls than copying a tensor.
    let first = (op.name != "aten::_local_scalar_dense").then(|| call(CAPTURING));
    first.into_iter().chain([copying, sync]).collect()
}
