//! Products of 16-bit numbers on tensor cores, by the specification alone: the fastest cut into tiles and splits, as
//! chosen by a library.
//!
//! `benches/products_elsewhere.py` fits the constants on GPUs of Ampere and Ada, and of Blackwell. It contains the same formula.

use steptime_aten::kernel::{Gemm, Precision};
use steptime_aten::{KernelCall, Role};

use crate::device::constants::Cuts;
use crate::device::context::{Context, Setting};
use crate::device::family::{HalfWidths, SpecEstimate};
use crate::device::spec::DeviceSpec;

use super::memory::has_two_caches;
use super::times::overlap;

/// A tile of the result.
struct Tile {
    rows: f64,
    columns: f64,
    /// Share of the peak that a multiprocessor full of these tiles reaches.
    share: f64,
    /// Tiles per multiprocessor.
    together: f64,
}

/// The duration of a product this short inside a step depends by half on the kernels before it, which only models account for.
const SHORT_US: f64 = 10.0;

/// Sides of the fitted products; the result may have fewer rows or columns.
const SIDES: std::ops::RangeInclusive<u64> = 32..=65_536;

/// Splits of the summed dimension that are tried.
const SPLITS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0];

/// Least depth of a split.
const LEAST_DEPTH: f64 = 64.0;

/// Step of the loop along the summed dimension.
const STEP: f64 = 32.0;

/// Time of a product of 16-bit numbers whose rows can be read in whole vectors; `None` for shapes and architectures
/// outside of the fit.
pub(super) fn narrow(
    gemm: &Gemm,
    call: &KernelCall,
    ctx: &Context,
    spec: &DeviceSpec,
) -> Option<SpecEstimate> {
    let is_narrow = matches!(gemm.precision, Precision::Bf16 | Precision::F16) && call.dtype.size() == 2;
    let constants = &spec.constants;
    let (cuts, cluster) = match spec.compute_capability {
        [8, _] => (&constants.cuts_ampere, None),
        [10, _] => (&constants.cuts_blackwell, Some(constants.clusters.share)),
        _ => return None,
    };
    let fitted_on = gemm.batch == 1 && SIDES.contains(&gemm.k) && gemm.m.max(gemm.n) <= *SIDES.end();
    (is_narrow && fitted_on).then(|| {
        let cache_rate = spec.l2.rate_gb_s * 1e3 * cuts.cache_rate;
        let (moved_us, fetched_us) = moved_us(call, ctx, cuts, cache_rate, spec);
        let machine = Machine { cuts, cache_rate, moved_us, fetched_us, spec };
        let least =
            tiles(cuts, cluster).map(|tile| machine.tile_us(gemm, &tile)).fold(f64::INFINITY, f64::min);
        let us = cuts.kernel_cycles / spec.clock_mhz + least;
        let short = if ctx.setting == Setting::Step { SHORT_US / us } else { 0.0 };
        SpecEstimate {
            us,
            share: 1.0 / (1.0 + short * short),
            worth: Some(HalfWidths { own: cuts.own, shared: cuts.shared }),
        }
    })
}

/// Candidate tiles: also those of clusters of multiprocessors, if their share of the peak is given.
fn tiles(cuts: &Cuts, cluster: Option<f64>) -> impl Iterator<Item = Tile> {
    let of_clusters = [(512.0, 256.0), (256.0, 256.0)];
    let of_clusters = cluster.map(|share| of_clusters.map(|(rows, columns)| (rows, columns, share, 1.0)));
    let kinds = [
        (256.0, 128.0, cuts.share_256x128, 1.0),
        (128.0, 128.0, cuts.share_128x128, 2.0),
        (256.0, 64.0, cuts.share_128x128, 2.0),
        (128.0, 64.0, cuts.share_128x64, 3.0),
        (64.0, 64.0, cuts.share_64x64, 4.0),
        (128.0, 32.0, cuts.share_64x64, 4.0),
        (64.0, 32.0, cuts.share_64x32, 6.0),
    ];
    of_clusters.into_iter().flatten().chain(kinds).flat_map(|(rows, columns, share, together)| {
        let turned = rows != columns && rows < 512.0;
        let one = Tile { rows, columns, share, together };
        let other = Tile { rows: columns, columns: rows, share, together };
        std::iter::once(one).chain(turned.then_some(other))
    })
}

/// Time to move operands and result, µs, and that to fetch operands from device memory alone.
fn moved_us(call: &KernelCall, ctx: &Context, cuts: &Cuts, cache_rate: f64, spec: &DeviceSpec) -> (f64, f64) {
    let rows = &spec.constants.rows;
    let held = if has_two_caches(spec) { rows.split_cache } else { rows.whole_cache };
    let room = held * spec.l2.effective_bytes as f64;
    let (mut all, mut fetched, mut written) = (0.0, 0.0, 0.0);
    for (at, operand) in call.operands.iter().enumerate() {
        let bytes = operand.bytes as f64;
        all += bytes;
        if operand.role != Role::Write {
            let distance = ctx.reuse.get(at).copied().flatten();
            let far = distance.map_or(f64::INFINITY, |bytes| (bytes as f64 / room).powf(cuts.sharpness));
            fetched += bytes * (1.0 - 1.0 / (1.0 + far));
        }
        if operand.role != Role::Read {
            written += bytes;
        }
    }
    let fits = room / (call.footprint() as f64).max(1.0);
    let kept = fits / (1.0 + fits.powi(4)).sqrt().sqrt();
    let moved_us = spec.dram_us(fetched + written * (1.0 - kept)).max(all / cache_rate);
    (moved_us, spec.dram_us(fetched))
}

/// Rates of the GPU that processes the tiles.
struct Machine<'a> {
    cuts: &'a Cuts,
    /// Bandwidth of the second-level cache, bytes per µs.
    cache_rate: f64,
    moved_us: f64,
    fetched_us: f64,
    spec: &'a DeviceSpec,
}

impl Machine<'_> {
    /// Time of the best number of splits, µs, without the kernel's start and end.
    fn tile_us(&self, gemm: &Gemm, tile: &Tile) -> f64 {
        let processors = f64::from(self.spec.multiprocessors);
        let tiles = (gemm.m as f64 / tile.rows).ceil() * (gemm.n as f64 / tile.columns).ceil();
        let allowed = |&splits: &f64| {
            let enough = gemm.k as f64 / splits >= LEAST_DEPTH && tiles * splits <= 4.0 * processors;
            splits == 1.0 || enough
        };
        let splits = SPLITS.into_iter().filter(allowed);
        splits.map(|splits| self.cut_us(gemm, tile, tiles, splits)).fold(f64::INFINITY, f64::min)
    }

    fn cut_us(&self, gemm: &Gemm, tile: &Tile, tiles: f64, splits: f64) -> f64 {
        let &Machine { cuts, cache_rate, moved_us, fetched_us, spec } = self;
        let (processors, clock) = (f64::from(spec.multiprocessors), spec.clock_mhz);
        let depth = (gemm.k as f64 / splits / STEP).ceil() * STEP;
        let blocks = tiles * splits;
        let waves = blocks / processors;
        let turns = if waves.ceil() > 6.0 * tile.together { waves + 0.5 } else { waves.ceil() };
        let peak = spec.matrix_tflop_s(gemm.precision) * 1e6 * tile.share / processors;
        let multiply = turns * 2.0 * tile.rows * tile.columns * depth / peak;
        let lone = depth / STEP * cuts.step_cycles / clock * (turns / tile.together).max(1.0);
        let feed = blocks * (tile.rows + tile.columns) * 2.0 * depth / cache_rate;
        let inner = multiply.max(lone).max(feed);
        let element = if splits > 1.0 { 4.0 } else { 2.0 };
        let store = turns * element * tile.rows * tile.columns / (cuts.store_bytes * clock);
        let first = (waves / tile.together).ceil() * cuts.wave_cycles / clock;
        let result = gemm.m as f64 * gemm.n as f64;
        let reduce =
            if splits > 1.0 { cuts.reduce_us + 4.0 * result * (splits + 1.0) / cache_rate } else { 0.0 };
        let busy = overlap(inner, fetched_us) + store + first;
        overlap(busy, moved_us) + reduce
    }
}

#[cfg(test)]
mod tests {
    use steptime_aten::kernel::Epilogue;
    use steptime_aten::{Dtype, Kernel, Operand, Slot};

    use super::*;
    use crate::device::families::fixture::h200;

    fn us(m: u64, n: u64, k: u64, capability: [u8; 2]) -> Option<f64> {
        let gemm = Gemm {
            batch: 1,
            m,
            n,
            k,
            a_transposed: false,
            b_transposed: true,
            lda: k,
            ldb: k,
            epilogue: Epilogue::None,
            precision: Precision::Bf16,
        };
        let operand = |slot, bytes, role| Operand { slot, bytes, role };
        let operands = [
            operand(Slot::Input(0, 0), 2 * m * k, Role::Read),
            operand(Slot::Input(1, 0), 2 * n * k, Role::Read),
            operand(Slot::Output(0, 0), 2 * m * n, Role::Write),
        ];
        let call = KernelCall {
            kernel: Kernel::Gemm(gemm),
            dtype: Dtype::Bf16,
            operands: operands.into_iter().collect(),
            flops: 2 * m * n * k,
            launches: 1,
        };
        let spec = DeviceSpec { compute_capability: capability, ..h200() };
        narrow(&gemm, &call, &Context::cold(&call), &spec).map(|formula| formula.us)
    }

    #[test]
    fn large_products_come_near_the_peak_and_small_ones_take_a_launch() {
        for capability in [[8, 0], [10, 0]] {
            let peak = 2.0 * 8192f64.powi(3) / (h200().peak.bf16_tflop_s * 1e6);
            let large = us(8192, 8192, 8192, capability).unwrap();
            assert!((0.75..1.5).contains(&(large / peak)), "{large} against {peak}");
            assert!((1.0..4.0).contains(&us(16, 64, 64, capability).unwrap()));
        }
        assert_eq!(us(512, 512, 512, [7, 5]), None, "no such products were fitted on Turing");
    }

    #[test]
    fn few_tiles_are_split_along_the_sum() {
        let (whole, deep) = (us(128, 128, 512, [8, 0]).unwrap(), us(128, 128, 65_536, [8, 0]).unwrap());
        assert!(deep < 40.0 * whole, "{whole} {deep}: 128 times the depth, on many more multiprocessors");
    }

    #[test]
    fn a_result_that_is_stored_between_tiles_takes_longer_than_memory_alone() {
        let stored = us(8192, 65_536, 128, [8, 0]).unwrap();
        assert!(stored > 1.3 * h200().dram_us(2.0 * 8192.0 * 65_536.0), "{stored}");
    }
}
