//! Fused scaled-dot-product attention.

use steptime_aten::kernel::{Attention, AttentionKind, Pass};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::gemm::precision;
use super::memory::{L2_LATENCY_US, Traffic};
use super::shared::{features, fill, flag, halvings, ln, ln_ratio, push_shared};
use super::tiles::on_tensor_cores;
use super::times::{instructions_us, overlap};

pub(super) struct Attentions;

/// Queries of one block.
const QUERIES: f64 = 64.0;
/// Widest head whose gradient the memory-efficient kernels keep in registers.
const WIDEST: u64 = 128;
/// Ratio of their rate in 16 bits with wider heads to that with others: median of 11,863 calls on one H100 (`lab/sweeps/wide_heads`).
const WIDE: f64 = 0.35;

struct Model {
    traffic: Traffic,
    blocks: f64,
    turns: f64,
    compute_us: f64,
    total_us: f64,
}

fn model(kernel: &Attention, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let processors = f64::from(spec.multiprocessors);
    let backward = kernel.pass == Pass::Backward;
    let heads = (kernel.batch as f64 * kernel.heads as f64).max(1.0);
    // In the backward pass, blocks own keys.
    let owned = if backward { kernel.keys as f64 } else { kernel.queries as f64 };
    let other = if backward { kernel.queries as f64 } else { kernel.keys as f64 }.max(1.0);
    let blocks = heads * (owned / QUERIES).ceil().max(1.0);
    let waves = blocks / processors;
    let turns = if waves <= 4.0 { waves.ceil() } else { waves + 0.5 };
    let seen = if kernel.causal { 0.5 } else { 1.0 };
    // Two products forward, five backward; heads are padded to whole tiles.
    let products = if backward { 2.5 } else { 1.0 };
    let tile = if kernel.dim.max(kernel.value_dim) <= 64 { 32.0 } else { 64.0 };
    let pad = |dim: u64| (dim as f64 / tile).ceil() * tile;
    let flops = 2.0 * QUERIES * other * (pad(kernel.dim) + pad(kernel.value_dim)) * seen * products;
    let tensor = on_tensor_cores(kernel.precision, spec);
    let wide =
        kernel.kind == AttentionKind::Efficient && backward && kernel.dim.max(kernel.value_dim) > WIDEST;
    let share = match kernel.kind {
        AttentionKind::Efficient => 0.28,
        AttentionKind::Flash => 0.45,
        AttentionKind::Cudnn => 0.7,
    } * if backward { 0.55 } else { 1.0 }
        * if wide { WIDE } else { 1.0 };
    let share = if tensor { share } else { 0.7 };
    let rate = spec.matrix_tflop_s(kernel.precision) * 1e6 / processors * share;
    let exponentials = instructions_us(blocks * QUERIES * other * seen * 8.0 * products, spec);
    // A lone block goes from keys to keys one round trip at a time.
    let alone = other * seen / 64.0 * products * 4.0 * L2_LATENCY_US;
    let compute_us = (turns * flops / rate + exponentials).max(alone);
    let busy = overlap(compute_us, traffic.move_us(spec, 1.0));
    let launches = f64::from(call.launches.max(1));
    let total_us =
        launches * (spec.launch.floor_us + spec.constants.attention.fixed_us) + traffic.latency_us() + busy;
    Model { traffic, blocks, turns, compute_us, total_us }
}

/// Number of blocks, and of tiles per block: the memory-efficient kernel's gradient is split over keys only if
/// there are too few heads, or many keys.
fn shared_out(kernel: &Attention) -> (f64, f64) {
    let heads = (kernel.batch as f64 * kernel.heads as f64).max(1.0);
    let [queries, keys] =
        [kernel.queries, kernel.keys].map(|length| (length as f64 / QUERIES).ceil().max(1.0));
    if kernel.pass == Pass::Forward {
        return (heads * queries, keys);
    }
    let whole = kernel.kind == AttentionKind::Efficient && heads >= 256.0 && keys <= 2.0;
    let splits = if whole { 1.0 } else { keys };
    (heads * splits, queries * keys / splits)
}

impl Family for Attentions {
    fn name(&self) -> &'static str {
        "attention"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Attention(kernel) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(kernel, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let processors = f64::from(spec.multiprocessors);
        }
        "backward" => flag(kernel.pass == Pass::Backward),
        "kind" => match kernel.kind {
            AttentionKind::Flash => 0.0,
            AttentionKind::Efficient => 1.0,
            AttentionKind::Cudnn => 2.0,
        },
        "precision" => precision(kernel.precision),
        "causal" => flag(kernel.causal),
        "bias" => flag(kernel.bias),
        "dropout" => flag(kernel.dropout),
        "ln_batch" => ln(kernel.batch as f64),
        "ln_heads" => ln(kernel.heads as f64),
        "ln_queries" => ln(kernel.queries as f64),
        "ln_keys" => ln(kernel.keys as f64),
        "dim" => kernel.dim as f32,
        "value_dim" => kernel.value_dim as f32,
        "ln_blocks_by_sm" => ln_ratio(model.blocks, processors),
        "wave_use" => (model.blocks / processors / model.turns) as f32,
        "compute_by_memory" => ln_ratio(model.compute_us, model.traffic.move_us(spec, 1.0)),
        "ln_flops_by_sm" => ln_ratio(call.flops as f64, processors),
    }

    fn published(&self) -> PaperModel {
        PaperModel::None
    }

    features! {
        own more_names, more(self, call, _ctx, spec, out) {
            let Kernel::Attention(attention) = &call.kernel else { return super::blank_more(self, out) };
            // Fill of the last tiles.
            let (blocks, serial) = shared_out(attention);
            let head = attention.keys.saturating_mul(attention.dim.saturating_add(attention.value_dim));
            let pairs = attention.batch as f64 * attention.heads as f64 * attention.keys as f64;
            let tensors = pairs * (attention.dim + attention.value_dim) as f64 * call.dtype.size() as f64;
        }
        "query_fill" => fill(attention.queries, 64.0),
        "key_fill" => fill(attention.keys, 64.0),
        "dim_fill" => fill(attention.dim, 32.0),
        "ln_other_read" => ln_ratio(call.bytes_read() as f64, tensors),
        "ln_head_bytes" => ln(head as f64),
        "align_keys" => halvings(attention.keys, 4),
        "ln_shared_blocks" => ln_ratio(blocks, f64::from(spec.multiprocessors)),
        "ln_serial" => ln(serial),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Attention(attention) if attention.bias => "masked",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Attention(kernel) => model(kernel, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}
