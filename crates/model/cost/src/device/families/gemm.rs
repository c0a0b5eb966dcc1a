//! Matrix products.

use steptime_aten::kernel::{self, Epilogue, Precision};
use steptime_aten::{Dtype, Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::{Family, SpecEstimate};
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::memory::Traffic;
use super::shared::{features, fill, flag, halvings, ln, ln_ratio, push_shared};
use super::tile_choice;
use super::tiles::{Cut, Shape, best, on_tensor_cores, wave_features};
use super::times::{instructions_us, overlap};

pub(super) struct Gemm;

struct Model {
    traffic: Traffic,
    cut: Cut,
    shape: Shape,
    /// Factor on the time of arithmetic for rows that vector loads cannot read.
    penalty: f64,
    memory_us: f64,
    total_us: f64,
}

fn shape(gemm: &kernel::Gemm, call: &KernelCall) -> Shape {
    Shape {
        batch: gemm.batch as f64,
        m: gemm.m as f64,
        n: gemm.n as f64,
        k: gemm.k as f64,
        element: call.dtype.size() as f64,
        precision: gemm.precision,
    }
}

/// Number of contiguous elements at 16-byte boundaries in every row of both factors, as a power of two.
fn alignment(gemm: &kernel::Gemm) -> f32 {
    halvings(gemm.lda, 4).min(halvings(gemm.ldb, 4))
}

/// Whether one of the sides is a vector, so that each element of the other is used once.
fn vector(gemm: &kernel::Gemm) -> bool {
    gemm.m == 1 || gemm.n == 1
}

fn model(gemm: &kernel::Gemm, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let shape = shape(gemm, call);
    let mut cut = best(&shape, spec);
    let aligned = match gemm.precision {
        Precision::Bf16 | Precision::F16 => NARROW_VECTOR,
        Precision::F8 | Precision::I8 => 4.0,
        _ => 2.0,
    };
    let slow = if shape.element < 4.0 { 6.0 } else { 2.0 };
    let penalty = if on_tensor_cores(gemm.precision, spec) && alignment(gemm) < aligned { slow } else { 1.0 };
    if vector(gemm) {
        // Every multiprocessor streams its rows; arithmetic is never the bottleneck.
        let instructions = 0.5 * call.flops as f64;
        cut.fixed_us = spec.constants.gemm.vector_fixed_us;
        cut.compute_us = instructions_us(instructions, spec);
        cut.reduce_us = 0.0;
    }
    let memory_us = traffic.move_us(spec, 1.0);
    let work = overlap(cut.compute_us * penalty, memory_us);
    let total_us = spec.launch.floor_us + traffic.latency_us() + work + cut.fixed_us + cut.reduce_us;
    Model { traffic, cut, shape, penalty, memory_us, total_us }
}

impl Family for Gemm {
    fn name(&self) -> &'static str {
        "gemm"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Gemm(gemm) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(gemm, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let shape = &model.shape;
            let waves = wave_features(shape, spec);
        }
        "ln_batch" => ln(shape.batch),
        "ln_m" => ln(shape.m),
        "ln_n" => ln(shape.n),
        "ln_k" => ln(shape.k),
        "ln_m_by_n" => ln_ratio(shape.m, shape.n),
        "ln_k_by_mn" => ln_ratio(shape.k * shape.k, shape.m * shape.n),
        "ln_intensity" => ln_ratio(call.flops as f64, model.traffic.l2()),
        "precision" => precision(gemm.precision),
        "a_transposed" => flag(gemm.a_transposed),
        "b_transposed" => flag(gemm.b_transposed),
        "epilogue" => match gemm.epilogue {
            Epilogue::None => 0.0,
            Epilogue::Bias => 1.0,
            Epilogue::Matrix => 2.0,
            Epilogue::BiasActivation => 3.0,
        },
        "align_a" => halvings(gemm.lda, 4),
        "align_b" => halvings(gemm.ldb, 4),
        "align_m" => halvings(gemm.m, 8),
        "align_n" => halvings(gemm.n, 8),
        "align_k" => halvings(gemm.k, 8),
        "vector" => flag(gemm.m == 1) + 2.0 * flag(gemm.n == 1),
        "tile" => model.cut.tile as f32,
        "ln_splits" => ln(model.cut.splits),
        "ln_depth" => ln(shape.k / model.cut.splits),
        "ln_blocks_by_sm" => ln_ratio(model.cut.blocks, f64::from(spec.multiprocessors)),
        "compute_by_memory" => ln_ratio(model.cut.compute_us, model.memory_us),
        "penalty" => model.penalty as f32,
        "t256x128" => waves[0],
        "w256x128" => waves[1],
        "t128x128" => waves[2],
        "w128x128" => waves[3],
        "t128x64" => waves[4],
        "w128x64" => waves[5],
        "t64x64" => waves[6],
        "w64x64" => waves[7],
        "t32x32" => waves[8],
        "w32x32" => waves[9],
    }

    fn published(&self) -> PaperModel {
        PaperModel::Network
    }

    features! {
        own more_names, more(self, call, _ctx, _spec, out) {
            let Kernel::Gemm(gemm) = &call.kernel else { return super::blank_more(self, out) };
            let smallest = gemm.m.min(gemm.n).min(gemm.k);
        }
        "fill_m16" => fill(gemm.m, 16.0),
        "fill_n16" => fill(gemm.n, 16.0),
        "fill_k16" => fill(gemm.k, 16.0),
        "fill_m64" => fill(gemm.m, 64.0),
        "fill_n64" => fill(gemm.n, 64.0),
        "ln_smallest" => ln(smallest as f64),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        match &call.kernel {
            Kernel::Gemm(gemm) if gemm.m == 1 || gemm.n == 1 => "vector",
            Kernel::Gemm(gemm) if gemm.batch > 1 && gemm.m.max(gemm.n).max(gemm.k) <= 128 => "small",
            _ => "",
        }
    }

    fn specified(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Option<SpecEstimate> {
        let Kernel::Gemm(gemm) = &call.kernel else { return None };
        if vector(gemm) {
            return None;
        }
        let vectors = alignment(gemm) >= NARROW_VECTOR;
        let narrow = vectors.then(|| tile_choice::narrow(gemm, call, ctx, spec)).flatten();
        if narrow.is_some() {
            return narrow;
        }
        let alike = gemm.batch > 1 && gemm.precision == Precision::F32 && call.dtype == Dtype::F32;
        let (rows, columns) = batch_tile(spec).filter(|_| alike)?;
        let tiles = (gemm.m as f64 / rows).ceil() * (gemm.n as f64 / columns).ceil() * gemm.batch as f64;
        let turns = (tiles / f64::from(spec.multiprocessors)).ceil();
        let one = 2.0 * rows * columns * (gemm.k as f64 + TILE_ENDS);
        let compute_us = turns * one * f64::from(spec.multiprocessors) / (spec.peak.f32_tflop_s * 1e6);
        let memory_us = spec.dram_us(Traffic::from_call(call, ctx, spec).dram());
        let formula = SpecEstimate::by_arithmetic(spec.launch.floor_us + overlap(compute_us, memory_us));
        // Tiles that are mostly empty were not observed: a library has other tiles for them.
        let full = gemm.batch as f64 * gemm.m as f64 * gemm.n as f64 / (tiles * rows * columns).max(1.0);
        Some(SpecEstimate { share: formula.share * (full / SEEN_FULL).min(1.0), ..formula })
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Gemm(gemm) => model(gemm, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}

/// Numbers of 16 bits per vector load, as a power of two.
const NARROW_VECTOR: f32 = 3.0;

/// Fill of the tiles in most of the observed products with the one tile size.
const SEEN_FULL: f64 = 0.25;

/// Time of a tile's begin and end, in steps of its sum.
const TILE_ENDS: f64 = 16.0;

/// Tile that cuBLAS takes for batches of 32-bit floats, rows and columns, if it takes one for every shape: kernel names in NeuSight's tables
/// (PyTorch 2.1) are `ampere_sgemm_128x128` in all rows of three GPUs, and `maxwell_sgemm_128x64` in all but four of two; Volta and Turing choose.
fn batch_tile(spec: &DeviceSpec) -> Option<(f64, f64)> {
    match spec.compute_capability {
        [6, _] => Some((64.0, 128.0)),
        [8, _] => Some((128.0, 128.0)),
        _ => None,
    }
}

/// Code of a precision. Part of the profiles' format: never renumbered.
pub(super) fn precision(precision: Precision) -> f32 {
    match precision {
        Precision::F64 => 0.0,
        Precision::F32 => 1.0,
        Precision::Tf32 => 2.0,
        Precision::Bf16 => 3.0,
        Precision::F16 => 4.0,
        Precision::F8 => 5.0,
        Precision::I8 => 6.0,
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::*;
    use crate::device::families::fixture::h200;

    #[test]
    fn batches_take_whole_tiles_where_the_library_takes_one_whatever_the_shape() {
        let call = |batch, n| {
            let gemm = kernel::Gemm {
                batch,
                m: 1024,
                n,
                k: 512,
                a_transposed: false,
                b_transposed: false,
                lda: 512,
                ldb: n,
                epilogue: Epilogue::None,
                precision: Precision::F32,
            };
            let flops = 2 * batch * 1024 * n * 512;
            KernelCall {
                kernel: Kernel::Gemm(gemm),
                dtype: Dtype::F32,
                operands: SmallVec::new(),
                flops,
                launches: 1,
            }
        };
        let us = |call: &KernelCall, capability| {
            let spec = DeviceSpec { compute_capability: capability, ..h200() };
            Gemm.specified(call, &Context::cold(call), &spec).map(|formula| formula.us)
        };
        let (full, little_more) = (us(&call(64, 128), [8, 0]).unwrap(), us(&call(64, 129), [8, 0]).unwrap());
        assert!((1.9..2.1).contains(&(little_more / full)), "{full} {little_more}");
        assert_eq!(us(&call(64, 128), [7, 0]), None, "Volta's library chooses");
        assert_eq!(us(&call(1, 128), [8, 0]), None, "no batch");
    }
}
