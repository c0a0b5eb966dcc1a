//! Matrix products cut into tiles: the waves of tiles, their depth, and the splits of the summed
//! dimension. Shared by the products, convolutions, attention and recurrent networks.

use steptime_aten::kernel::Precision;

use super::times::overlap;
use crate::device::spec::DeviceSpec;

/// A product to cut: `batch` times `m x n x k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Number of products.
    pub batch: f64,
    /// Rows of the result.
    pub m: f64,
    /// Columns of the result.
    pub n: f64,
    /// Summed dimension.
    pub k: f64,
    /// Bytes per element.
    pub element: f64,
    pub precision: Precision,
}

/// The fastest cut of a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Index into the list of tiles.
    pub tile: usize,
    /// Splits of the summed dimension.
    pub splits: f64,
    /// Number of tiles, with splits.
    pub blocks: f64,
    /// Time of the arithmetic and of feeding it from the cache, µs.
    pub compute_us: f64,
    /// Time of the kernel's start and end on top of the launch floor, µs.
    pub fixed_us: f64,
    /// Time to add the splits up, µs.
    pub reduce_us: f64,
}

/// Candidate tiles: rows and columns. `Tiles::shares` has the share of the peak of each.
const TILES: [(f64, f64); 8] = [
    (256.0, 128.0),
    (128.0, 128.0),
    (128.0, 64.0),
    (64.0, 64.0),
    (128.0, 32.0),
    (64.0, 32.0),
    (32.0, 32.0),
    (16.0, 16.0),
];

/// Candidate splits.
const SPLITS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0];

/// Least depth of a split that is worth its own block.
const LEAST_DEPTH: f64 = 64.0;

/// Whether a precision runs on tensor cores of this GPU.
pub(super) fn on_tensor_cores(precision: Precision, spec: &DeviceSpec) -> bool {
    match precision {
        Precision::F32 => false,
        Precision::F64 => spec.peak.f64_tflop_s > 0.75 * spec.peak.f32_tflop_s,
        _ => spec.matrix_tflop_s(precision) > 1.5 * spec.peak.f32_tflop_s,
    }
}

/// Ratio of a multiprocessor's work per cycle to that of the one with a known feed rate: faster units have faster feeds.
fn feed_ratio(precision: Precision, known: f64, spec: &DeviceSpec) -> f64 {
    let peak = &spec.peak;
    let rate = match precision {
        Precision::F32 => peak.f32_tflop_s,
        Precision::Tf32 => peak.tf32_tflop_s,
        Precision::F64 => return 1.0,
        // All narrow types by the rate of one of them.
        _ => peak.bf16_tflop_s.max(peak.f16_tflop_s),
    };
    let cycles = f64::from(spec.multiprocessors) * spec.clock_mhz;
    let grown = rate * 1e6 / (cycles * known);
    if grown.is_finite() && grown > 0.0 { grown } else { 1.0 }
}

/// Returns the fastest cut.
pub(super) fn best(shape: &Shape, spec: &DeviceSpec) -> Cut {
    let processors = f64::from(spec.multiprocessors);
    let tensor = on_tensor_cores(shape.precision, spec);
    let kind = match (tensor, shape.precision) {
        (false, _) => &spec.constants.tiles_vector,
        (true, Precision::Tf32 | Precision::F64) => &spec.constants.tiles_tensor_wide,
        (true, _) => &spec.constants.tiles_tensor_narrow,
    };
    let feed_rate = kind.feed * feed_ratio(shape.precision, kind.per_cycle, spec) * spec.clock_mhz;
    let rate = spec.matrix_tflop_s(shape.precision) * 1e6 / processors;
    let (m, n, k) = (shape.m.max(1.0), shape.n.max(1.0), shape.k.max(1.0));
    let mut least: Option<(f64, Cut)> = None;
    for (tile, ((first, second), share)) in TILES.into_iter().zip(kind.shares).enumerate() {
        for (rows, columns) in [(first, second), (second, first)] {
            if rows == columns && first != second {
                continue;
            }
            let plain = (m / rows).ceil() * (n / columns).ceil() * shape.batch.max(1.0);
            for splits in SPLITS {
                if splits > 1.0 && (k / splits < LEAST_DEPTH || plain * splits > 4.0 * processors) {
                    break;
                }
                let depth = (k / splits).ceil();
                let blocks = plain * splits;
                // A multiprocessor works on its tiles one after the other, or on several at once at a share each.
                let waves = blocks / processors;
                let turns = if waves <= 6.0 { waves.ceil() } else { waves + 0.5 };
                let multiply = 2.0 * rows * columns * depth / (rate * share);
                let feed = (rows + columns) * depth * shape.element / feed_rate;
                // One lone tile waits for its operands at each step of the loop.
                let alone = depth / kind.step * kind.step_us + 0.2;
                let one = overlap(multiply, feed);
                let compute_us = (turns * one).max(alone * (turns / kind.together).max(1.0));
                let reduce_us = if splits > 1.0 {
                    kind.reduce_us + spec.l2_us(m * n * shape.batch * 4.0 * (splits + 1.0))
                } else {
                    0.0
                };
                let total = compute_us + reduce_us;
                if least.is_none_or(|(time, _)| total < time) {
                    least = Some((
                        total,
                        Cut { tile, splits, blocks, compute_us, fixed_us: kind.fixed_us, reduce_us },
                    ));
                }
            }
        }
    }
    least.map_or(
        Cut { tile: 0, splits: 1.0, blocks: 1.0, compute_us: 0.0, fixed_us: 0.0, reduce_us: 0.0 },
        |(_, cut)| cut,
    )
}

/// Features of a shape that choose kernels: for a few tiles, their number per multiprocessor, and the fill of the last
/// wave.
pub(super) fn wave_features(shape: &Shape, spec: &DeviceSpec) -> [f32; 10] {
    let processors = f64::from(spec.multiprocessors);
    let mut features = [0.0; 10];
    for (pair, (rows, columns)) in features.chunks_exact_mut(2).zip(WAVE_TILES) {
        let tiles = (shape.m / rows).ceil() * (shape.n / columns).ceil() * shape.batch.max(1.0);
        let waves = tiles / processors;
        pair[0] = super::shared::ln_ratio(tiles, processors);
        pair[1] = (waves.ceil() / waves.max(1e-9)).min(200.0) as f32;
    }
    features
}

/// Tiles of these features.
const WAVE_TILES: [(f64, f64); 5] =
    [(256.0, 128.0), (128.0, 128.0), (128.0, 64.0), (64.0, 64.0), (32.0, 32.0)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::families::fixture::h200;

    fn product(m: f64, n: f64, k: f64) -> Shape {
        Shape { batch: 1.0, m, n, k, element: 4.0, precision: Precision::F32 }
    }

    #[test]
    fn a_long_sum_is_split() {
        let spec = h200();
        assert!(best(&product(64.0, 64.0, 65_536.0), &spec).splits > 1.0);
        assert_eq!(best(&product(8192.0, 8192.0, 8192.0), &spec).splits, 1.0);
    }

    #[test]
    fn large_products_reach_the_peak() {
        let spec = h200();
        let time = best(&product(8192.0, 8192.0, 8192.0), &spec).compute_us;
        let peak = 2.0 * 8192f64.powi(3) / (spec.peak.f32_tflop_s * 1e6);
        assert!(time > 0.98 * peak && time < 1.1 * peak, "{time} against {peak}");
    }
}
