//! Compile-time parameters of an interaction, and its launch.

use steptime_ops::interaction::Interaction as Shape;

use crate::geometry::Geometry;
use crate::{Error, Grid, Source};

/// Largest shared memory of a block, in bytes.
const MOST_SHARED: usize = 227 << 10;

/// Warps of a block.
const WARPS: usize = 4;

/// Parameters of a compilation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) aligned: bool,
    /// Bytes of shared memory, forward and backward.
    pub(super) shared: [usize; 2],
}

impl Plan {
    pub(super) fn new(shape: Shape, aligned: bool) -> Result<Plan, Error> {
        let (f, d) = (shape.features(), shape.dim());
        let vectors = f.saturating_mul(d.div_ceil(4) | 1).saturating_mul(16);
        let pairs = vectors.saturating_add(shape.pairs().saturating_mul(4 * WARPS));
        let square = vectors.saturating_add(f.saturating_mul(f.next_multiple_of(8) * 4));
        if pairs.max(square) > MOST_SHARED {
            return Err(Error::Unsupported {
                what: format!("an interaction of {f} vectors of {d} floats"),
                remedy: "a sample must fit 227 KiB of shared memory: take fewer or shorter vectors",
            });
        }
        Ok(Plan { shape, aligned: aligned && d.is_multiple_of(4), shared: [pairs, square] })
    }

    pub(super) fn source(&self) -> Source {
        Source::new("interaction.cu", include_str!("interaction.cu"))
            .define("F", self.shape.features())
            .define("D", self.shape.dim())
            .define("SELF", u8::from(self.shape.self_interaction()))
            .define("WARPS", WARPS)
            .define("ALIGNED", u8::from(self.aligned))
    }

    pub(super) fn grid(&self, samples: usize, direction: usize) -> Grid {
        Grid::line(samples as u32, 32 * WARPS as u32).shared(self.shared[direction] as u32)
    }

    pub(super) fn geometry(&self, samples: usize) -> [Geometry; 2] {
        let f = self.shape.features();
        let residues = f.div_ceil(4);
        let tiles = residues * (residues + 1) / 2;
        let quads = self.shape.dim().div_ceil(4);
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
        let forward = format!("4 x 4 pairs a lane, {tiles} such tiles");
        let busy = |work: usize| work as f64 / work.next_multiple_of(32) as f64;
        [
            one("interaction_forward", 0, forward, busy(tiles)),
            one("interaction_backward", 1, "4 columns of 8 vectors a lane".to_owned(), busy(quads)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn samples_that_do_not_fit_are_refused() {
        let plan = |f, d| Plan::new(Shape::new(f, d, false).unwrap(), true);
        assert!(plan(27, 128).is_ok() && plan(100, 256).is_ok());
        assert!(!plan(27, 130).unwrap().aligned);
        let error = plan(1000, 256).unwrap_err().to_string();
        assert!(error.contains("shared memory"), "{error}");
    }

    #[test]
    fn geometry_counts_busy_lanes() {
        let [forward, backward] =
            Plan::new(Shape::new(27, 128, false).unwrap(), true).unwrap().geometry(2048);
        assert!(forward.to_string().contains("grid 2048 x 1 x 1"), "{forward}");
        assert_eq!((forward.busy, backward.busy), (28.0 / 32.0, 1.0));
    }

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        for (f, d, own, aligned) in [(27, 128, false, true), (1, 1, true, false), (40, 33, true, true)] {
            let source = Plan::new(Shape::new(f, d, own).unwrap(), aligned).unwrap().source();
            compiler.build(&source);
        }
    }
}
