//! Dot interaction on a GPU, as `steptime_ops::interaction` does it: see `interaction.cu`.
//!
//! Each sample's vectors are read once, and only the triangle is computed. Sums are fused multiply-adds from the first
//! column to the last, the same in each run.

use bytemuck::{Pod, Zeroable};
use steptime_ops::interaction::Interaction as Shape;

use crate::geometry::Geometry;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Shared memory of a multiprocessor's block, in bytes.
const MOST_SHARED: usize = 227 << 10;

/// Warps of a block.
const WARPS: usize = 4;

/// Vectors of neighbouring floats, one or more for each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Floats from sample to sample.
    pub sample: usize,
    /// Floats from vector to vector of a sample.
    pub vector: usize,
}

/// The `F` vectors of each sample: the dense one and the others, in one buffer or in two.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a> {
    dense: (Slice<'a, f32>, usize),
    others: (Slice<'a, f32>, Strides),
}

/// Where the gradients of the vectors go, all overwritten.
#[derive(Debug)]
pub struct FeaturesMut<'a> {
    dense: (SliceMut<'a, f32>, usize),
    others: (SliceMut<'a, f32>, Strides),
}

impl<'a> Features<'a> {
    /// The dense vectors, `stride` floats from sample to sample, and the others.
    #[must_use]
    pub fn split(
        dense: Slice<'a, f32>,
        stride: usize,
        others: Slice<'a, f32>,
        strides: Strides,
    ) -> Features<'a> {
        Features { dense: (dense, stride), others: (others, strides) }
    }
}

impl<'a> FeaturesMut<'a> {
    /// The dense vectors, `stride` floats from sample to sample, and the others.
    #[must_use]
    pub fn split(
        dense: SliceMut<'a, f32>,
        stride: usize,
        others: SliceMut<'a, f32>,
        strides: Strides,
    ) -> FeaturesMut<'a> {
        FeaturesMut { dense: (dense, stride), others: (others, strides) }
    }
}

/// As `interaction.cu` has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Vectors {
    dense: u64,
    others: u64,
    dense_stride: u64,
    others_stride: u64,
    stride: u64,
}

/// What a compilation is for.
#[derive(Debug, Clone, Copy)]
struct Plan {
    shape: Shape,
    aligned: bool,
    /// Bytes of shared memory, forward and backward.
    shared: [usize; 2],
}

impl Plan {
    fn new(shape: Shape, aligned: bool) -> Result<Plan, Error> {
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

    fn source(&self) -> Source {
        Source::new("interaction.cu", include_str!("interaction.cu"))
            .define("F", self.shape.features())
            .define("D", self.shape.dim())
            .define("SELF", u8::from(self.shape.self_interaction()))
            .define("WARPS", WARPS)
            .define("ALIGNED", u8::from(self.aligned))
    }

    fn grid(&self, samples: usize, direction: usize) -> Grid {
        Grid::line(samples as u32, 32 * WARPS as u32).shared(self.shared[direction] as u32)
    }

    fn geometry(&self, samples: usize) -> [Geometry; 2] {
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

/// A dot interaction compiled for its shape.
#[derive(Debug)]
pub struct Interaction {
    plan: Plan,
    forward: Kernel,
    backward: Kernel,
}

impl Interaction {
    /// Compiles it. With `aligned`, vectors may be read and written 16 bytes at a time: addresses and strides of
    /// features and of their gradients are multiples of four floats.
    ///
    /// # Errors
    ///
    /// No compiler; a sample too large for shared memory.
    pub fn new(device: &Device, shape: Shape, aligned: bool) -> Result<Interaction, Error> {
        let plan = Plan::new(shape, aligned)?;
        let module = device.load(&plan.source())?;
        let [forward, backward] =
            [module.kernel("interaction_forward")?, module.kernel("interaction_backward")?];
        for (kernel, shared) in [&forward, &backward].into_iter().zip(plan.shared) {
            kernel.allow_shared(shared as u32)?;
        }
        Ok(Interaction { plan, forward, backward })
    }

    /// The output `[B, D + P]`, with rows `stride` floats apart, of B = `samples` samples.
    ///
    /// # Errors
    ///
    /// Operands that are too short, or not aligned as compiled for.
    pub fn forward(
        &self,
        stream: &Stream,
        samples: usize,
        features: &Features<'_>,
        out: &mut SliceMut<'_, f32>,
        stride: usize,
    ) -> Result<(), Error> {
        let vectors = self.vectors(samples, features)?;
        self.check_rows("the output of an interaction", samples, out.len(), stride)?;
        let args = Args::new().value(vectors).slice_mut(out).value(stride as u64);
        // SAFETY: the arguments are those of the kernel, and their sizes were checked. The slices are of
        // buffers, which are freed only once the GPU is done, or of others, who promised as much.
        unsafe { self.forward.launch(stream, self.plan.grid(samples, 0), args) }
    }

    /// The gradient of the features, from that of the output, `[B, D + P]` with rows `stride` floats apart.
    ///
    /// # Errors
    ///
    /// Operands that are too short, or not aligned as compiled for.
    pub fn backward(
        &self,
        stream: &Stream,
        samples: usize,
        features: &Features<'_>,
        gradient: Slice<'_, f32>,
        stride: usize,
        to: &mut FeaturesMut<'_>,
    ) -> Result<(), Error> {
        let vectors = self.vectors(samples, features)?;
        self.check_rows("the gradient of an interaction", samples, gradient.len(), stride)?;
        let written = Features {
            dense: (to.dense.0.as_ref(), to.dense.1),
            others: (to.others.0.as_ref(), to.others.1),
        };
        let written = self.vectors(samples, &written)?;
        let args = Args::new().value(vectors).slice(gradient);
        let args = args.value(stride as u64).value(written);
        // SAFETY: as above; each vector is written by one warp.
        unsafe { self.backward.launch(stream, self.plan.grid(samples, 1), args) }
    }

    fn vectors(&self, samples: usize, features: &Features<'_>) -> Result<Vectors, Error> {
        let (f, d) = (self.plan.shape.features(), self.plan.shape.dim());
        let (dense, dense_stride) = features.dense;
        let (others, Strides { sample, vector }) = features.others;
        let least = |rows: usize, row: usize, columns: usize, column: usize| match (rows, columns) {
            (0, _) | (_, 0) => Some(0),
            _ => (rows - 1).checked_mul(row)?.checked_add((columns - 1).checked_mul(column)?)?.checked_add(d),
        };
        let size = |what, found, needed: Option<usize>| match needed.unwrap_or(usize::MAX) {
            needed if found < needed => Err(Error::Size { what, found, needed }),
            _ => Ok(()),
        };
        size("dense vectors of an interaction", dense.len(), least(samples, dense_stride, 1, 0))?;
        size("vectors of an interaction", others.len(), least(samples, sample, f - 1, vector))?;
        let strides = [dense_stride, sample, vector];
        let addresses = [dense.address(), others.address()];
        let multiple = strides.iter().all(|stride| stride.is_multiple_of(4))
            && addresses.iter().all(|address| address.is_multiple_of(16));
        if self.plan.aligned && !multiple {
            return Err(Error::Unsupported {
                what: format!("vectors with strides {strides:?} for an interaction of aligned ones"),
                remedy: "make the `Interaction` for vectors that are not aligned",
            });
        }
        Ok(Vectors {
            dense: dense.address(),
            others: others.address(),
            dense_stride: dense_stride as u64,
            others_stride: sample as u64,
            stride: vector as u64,
        })
    }

    fn check_rows(
        &self,
        what: &'static str,
        samples: usize,
        found: usize,
        stride: usize,
    ) -> Result<(), Error> {
        let columns = self.plan.shape.columns();
        let rows = samples.saturating_sub(1).checked_mul(stride).and_then(|rows| rows.checked_add(columns));
        let needed = if samples == 0 { 0 } else { rows.unwrap_or(usize::MAX) };
        if found < needed || (samples > 1 && stride < columns) || u32::try_from(samples).is_err() {
            return Err(Error::Size { what, found, needed: needed.max(samples.saturating_mul(columns)) });
        }
        Ok(())
    }

    /// How its kernels are launched for this many samples.
    ///
    /// # Errors
    ///
    /// The driver refuses to say how many registers they take.
    pub fn geometry(&self, samples: usize) -> Result<[Geometry; 2], Error> {
        let mut both = self.plan.geometry(samples);
        both[0].registers = Some(self.forward.registers()?);
        both[1].registers = Some(self.backward.registers()?);
        Ok(both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Build, Capability, CubinCache, nvrtc_version};

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
        let Ok((major, _)) = nvrtc_version() else {
            return steptime_skips::skip("no NVRTC");
        };
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::at(folder.path());
        for (f, d, own, aligned) in [(27, 128, false, true), (1, 1, true, false), (40, 33, true, true)] {
            let source = Plan::new(Shape::new(f, d, own).unwrap(), aligned).unwrap().source();
            let build = Build::new(&source, Capability { major: 9, minor: 0 }, major * 1000, &cache);
            assert!(build.is_ok(), "{}", build.unwrap_err());
        }
    }
}
