//! Compile-time parameters of an interaction, and its launch.

use steptime_ops::interaction::Interaction as Shape;

use crate::float::FLOATS;
use crate::geometry::Geometry;
use crate::{Error, Float, Grid, Source};

/// Largest shared memory of a block, in bytes.
const MOST_SHARED: usize = 227 << 10;

/// Warps of a block.
const WARPS: usize = 4;

/// Common beginning of the device code of both kernels.
const VECTORS: &str = include_str!("vectors.cuh");

/// Parameters of a compilation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) aligned: bool,
    /// Bytes of shared memory, forward and backward.
    pub(super) shared: [usize; 2],
    /// Warps of a block: all of one sample, or of one sample each.
    warps: usize,
    /// The type of elements in device code.
    value: &'static str,
    /// Whether elements have 16 bits, and matrix instructions multiply them.
    is_16_bit: bool,
}

impl Plan {
    pub(super) fn new<T: Float>(shape: Shape, aligned: bool) -> Result<Plan, Error> {
        let is_16_bit = size_of::<T>() == 2;
        let (warps, shared) = if is_16_bit { rows(shape) } else { (WARPS, vectors(shape)) };
        if warps == 0 || shared.into_iter().any(|bytes| bytes > MOST_SHARED) {
            return Err(Error::Unsupported {
                what: format!("an interaction of {} vectors of {} elements", shape.features(), shape.dim()),
                remedy: "a sample must fit 227 KiB of shared memory: take fewer or shorter vectors",
            });
        }
        let aligned = aligned && (shape.dim() * size_of::<T>()).is_multiple_of(16);
        Ok(Plan { shape, aligned, shared, warps, value: T::DEVICE_NAME, is_16_bit })
    }

    pub(super) fn source(&self) -> Source {
        let (name, kernels) = if self.is_16_bit {
            ("interaction_mma.cu", include_str!("interaction_mma.cu"))
        } else {
            ("interaction.cu", include_str!("interaction.cu"))
        };
        Source::new(name, [FLOATS, VECTORS, kernels].concat())
            .define("VALUE", self.value)
            .define("F", self.shape.features())
            .define("D", self.shape.dim())
            .define("SELF", u8::from(self.shape.self_interaction()))
            .define("WARPS", self.warps)
            .define("ALIGNED", u8::from(self.aligned))
    }

    pub(super) fn grid(&self, samples: usize, direction: usize) -> Grid {
        let blocks = if self.is_16_bit { samples.div_ceil(self.warps) } else { samples };
        Grid::line(blocks as u32, 32 * self.warps as u32).shared(self.shared[direction] as u32)
    }

    pub(super) fn geometry(&self, samples: usize) -> [Geometry; 2] {
        let f = self.shape.features();
        let one = |kernel, direction, lanes, busy| Geometry {
            kernel,
            grid: self.grid(samples, direction),
            axes: "x samples",
            registers: None,
            lanes,
            busy,
            bounds: "shapes by the host",
            divergence: "none",
        };
        let busy = |work: usize, lanes: usize| work as f64 / work.next_multiple_of(lanes) as f64;
        if self.is_16_bit {
            let lanes =
                || format!("a warp a sample; 8 columns of 4 vectors a lane, {f} vectors in blocks of 32");
            return [
                one("interaction_forward", 0, lanes(), busy(f, 8)),
                one("interaction_backward", 1, lanes(), busy(f, 8)),
            ];
        }
        let residues = f.div_ceil(4);
        let tiles = residues * (residues + 1) / 2;
        let quads = self.shape.dim().div_ceil(4);
        let forward = format!("4 x 4 pairs a lane, {tiles} such tiles");
        [
            one("interaction_forward", 0, forward, busy(tiles, 32)),
            one("interaction_backward", 1, "4 columns of 8 vectors a lane".to_owned(), busy(quads, 32)),
        ]
    }
}

/// Bytes of shared memory for the vectors of a sample, and for its pairs or their square.
fn vectors(shape: Shape) -> [usize; 2] {
    let (f, d) = (shape.features(), shape.dim());
    let vectors = f.saturating_mul(d.div_ceil(4) | 1).saturating_mul(16);
    let pairs = vectors.saturating_add(shape.pairs().saturating_mul(4 * WARPS));
    let square = vectors.saturating_add(f.saturating_mul(f.next_multiple_of(8) * 4));
    [pairs, square]
}

/// Warps whose rows of the output fit shared memory together, and the bytes of these rows.
fn rows(shape: Shape) -> (usize, [usize; 2]) {
    let row = shape.columns().saturating_add(7) / 8 * 16;
    let warps = (MOST_SHARED / row).min(WARPS);
    (warps, [warps * row; 2])
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::TestCompiler;

    #[test]
    fn samples_that_do_not_fit_are_refused() {
        let plan = |f, d| Plan::new::<f32>(Shape::new(f, d, false).unwrap(), true);
        assert!(plan(27, 128).is_ok() && plan(100, 256).is_ok());
        assert!(!plan(27, 130).unwrap().aligned);
        let error = plan(1000, 256).unwrap_err().to_string();
        assert!(error.contains("shared memory"), "{error}");
        let plan = |f, d| Plan::new::<bf16>(Shape::new(f, d, false).unwrap(), true);
        assert!(plan(27, 128).unwrap().aligned && !plan(27, 132).unwrap().aligned);
        assert_eq!(plan(27, 128).unwrap().shared, [4 * 960; 2]);
        assert_eq!(plan(300, 64).unwrap().warps, 2);
        let error = plan(1000, 256).unwrap_err().to_string();
        assert!(error.contains("shared memory"), "{error}");
    }

    #[test]
    fn geometry_counts_busy_lanes() {
        let shape = Shape::new(27, 128, false).unwrap();
        let [forward, backward] = Plan::new::<f32>(shape, true).unwrap().geometry(2048);
        assert!(forward.to_string().contains("grid 2048 x 1 x 1"), "{forward}");
        assert_eq!((forward.busy, backward.busy), (28.0 / 32.0, 1.0));
        let [forward, _] = Plan::new::<bf16>(shape, true).unwrap().geometry(2049);
        assert!(forward.to_string().contains("grid 513 x 1 x 1"), "{forward}");
    }

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        for (f, d, own, aligned) in
            [(27, 128, false, true), (1, 1, true, false), (40, 33, true, true), (70, 64, false, true)]
        {
            let shape = Shape::new(f, d, own).unwrap();
            compiler.build(&Plan::new::<f32>(shape, aligned).unwrap().source());
            compiler.build(&Plan::new::<bf16>(shape, aligned).unwrap().source());
        }
    }
}
