//! Matrix products cut into tiles: how many waves of tiles run, how deep, and in how many splits of the summed
//! dimension. Shared by the products, convolutions, attention and recurrent networks.

use steptime_aten::kernel::Precision;

use crate::device::spec::DeviceSpec;

use super::shared::overlap;

/// A product to be cut: `batch` times `m x n x k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Products.
    pub batch: f64,
    /// Rows of the result.
    pub m: f64,
    /// Columns of the result.
    pub n: f64,
    /// The summed dimension.
    pub k: f64,
    /// Bytes an element.
    pub element: f64,
    /// How numbers are multiplied.
    pub precision: Precision,
}

/// The best way found to cut one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Index into the list of tiles.
    pub tile: usize,
    /// Splits of the summed dimension.
    pub splits: f64,
    /// Tiles, splits counted.
    pub blocks: f64,
    /// The time of the arithmetic and of feeding it from the cache, µs.
    pub compute_us: f64,
    /// The kernel's way in and out, beside the launch floor, µs.
    pub fixed_us: f64,
    /// The time to add the splits up, µs.
    pub reduce_us: f64,
}

/// How a kind of unit works through tiles; all fitted on an H200.
struct Kind {
    tiles: &'static [Tile],
    /// A kernel's way in and out, beside the launch floor, µs.
    fixed_us: f64,
    /// One step of a lone tile's loop, µs, and how deep it is.
    step_us: f64,
    step: f64,
    /// Tiles that hide one another's waiting.
    together: f64,
    /// Adding splits up, beside moving them, µs.
    reduce_us: f64,
    /// What feeds a multiprocessor, bytes per cycle.
    feed: f64,
}

/// A tile: rows, columns, and the share of the peak rate that a multiprocessor full of such tiles reaches.
type Tile = (f64, f64, f64);

/// For arithmetic outside tensor cores.
const SIMT: &[Tile] = &[
    (256.0, 128.0, 1.0),
    (128.0, 128.0, 0.96),
    (128.0, 64.0, 0.89),
    (64.0, 64.0, 0.75),
    (128.0, 32.0, 0.72),
    (64.0, 32.0, 0.57),
    (32.0, 32.0, 0.36),
    (16.0, 16.0, 0.13),
];

/// For tensor cores.
const TENSOR: &[Tile] = &[
    (256.0, 128.0, 1.0),
    (128.0, 128.0, 0.92),
    (128.0, 64.0, 0.75),
    (64.0, 64.0, 0.5),
    (128.0, 32.0, 0.45),
    (64.0, 32.0, 0.3),
    (32.0, 32.0, 0.18),
    (16.0, 16.0, 0.08),
];

const ORDINARY: Kind =
    Kind { tiles: SIMT, fixed_us: 1.8, step_us: 0.01, step: 16.0, together: 0.9, reduce_us: 4.3, feed: 11.4 };

const WIDE_TENSOR: Kind = Kind {
    tiles: TENSOR,
    fixed_us: 2.1,
    step_us: 0.21,
    step: 64.0,
    together: 0.9,
    reduce_us: 3.0,
    feed: 25.4,
};

const NARROW_TENSOR: Kind = Kind {
    tiles: TENSOR,
    fixed_us: 1.8,
    step_us: 0.082,
    step: 64.0,
    together: 1.7,
    reduce_us: 3.2,
    feed: 55.0,
};

/// Splits that are tried.
const SPLITS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0];

/// The least depth of a split worth its own block.
const LEAST_DEPTH: f64 = 64.0;

/// Whether a precision runs on tensor cores here.
pub(super) fn on_tensor_cores(precision: Precision, spec: &DeviceSpec) -> bool {
    match precision {
        Precision::F32 => false,
        Precision::F64 => spec.peak.f64_tflop_s > 0.75 * spec.peak.f32_tflop_s,
        _ => spec.matrix_tflop_s(precision) > 1.5 * spec.peak.f32_tflop_s,
    }
}

/// The cut that takes least time.
pub(super) fn best(shape: &Shape, spec: &DeviceSpec) -> Cut {
    let processors = f64::from(spec.multiprocessors);
    let tensor = on_tensor_cores(shape.precision, spec);
    let kind = match (tensor, shape.precision) {
        (false, _) => ORDINARY,
        (true, Precision::Tf32 | Precision::F64) => WIDE_TENSOR,
        (true, _) => NARROW_TENSOR,
    };
    let feed_rate = kind.feed * spec.clock_mhz;
    let rate = spec.matrix_tflop_s(shape.precision) * 1e6 / processors;
    let (m, n, k) = (shape.m.max(1.0), shape.n.max(1.0), shape.k.max(1.0));
    let mut least: Option<(f64, Cut)> = None;
    for (tile, &(first, second, share)) in kind.tiles.iter().enumerate() {
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

/// Features of a shape that choose kernels: tiles a multiprocessor and how full the last wave is, for a few tiles.
pub(super) fn wave_features(shape: &Shape, spec: &DeviceSpec, out: &mut Vec<f32>) {
    let processors = f64::from(spec.multiprocessors);
    for (rows, columns) in [(256.0, 128.0), (128.0, 128.0), (128.0, 64.0), (64.0, 64.0), (32.0, 32.0)] {
        let tiles = (shape.m / rows).ceil() * (shape.n / columns).ceil() * shape.batch.max(1.0);
        let waves = tiles / processors;
        out.push(super::shared::ln_ratio(tiles, processors));
        out.push((waves.ceil() / waves.max(1e-9)).min(200.0) as f32);
    }
}

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
