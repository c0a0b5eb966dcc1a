//! Dot interaction on a GPU, with the semantics of `steptime_ops::interaction`: see `interaction.cu` for vectors of 32-bit
//! floats, `interaction_mma.cu` for those of 16 bits.
//!
//! Each sample's vectors are read once, and only the triangle is computed. Sums are in 32 bits, in the same order in each
//! run.

mod features;
mod plan;

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};
use steptime_ops::interaction::Interaction as Shape;

pub use self::features::{Features, FeaturesMut, Strides};
use self::plan::Plan;
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Float, Kernel, Slice, SliceMut, Stream};

/// Kernel argument: see `vectors.cuh`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Vectors {
    dense: u64,
    others: u64,
    dense_stride: u64,
    others_stride: u64,
    stride: u64,
}

/// A dot interaction compiled for its shape, of vectors, outputs and gradients with elements `T`.
#[derive(Debug)]
pub struct Interaction<T = f32> {
    plan: Plan,
    forward: Kernel,
    backward: Kernel,
    of: PhantomData<fn(T) -> T>,
}

impl<T: Float> Interaction<T> {
    /// Compiles the interaction. With `aligned`, vectors may be read and written 16 bytes at a time: addresses and
    /// strides of features and of their gradients must be multiples of 16 bytes.
    ///
    /// # Errors
    ///
    /// No compiler; a sample too large for shared memory.
    pub fn new(device: &Device, shape: Shape, aligned: bool) -> Result<Interaction<T>, Error> {
        let plan = Plan::new::<T>(shape, aligned)?;
        let module = device.load(&plan.source())?;
        let [forward, backward] =
            [module.kernel("interaction_forward")?, module.kernel("interaction_backward")?];
        for (kernel, shared) in [&forward, &backward].into_iter().zip(plan.shared) {
            kernel.allow_shared(shared as u32)?;
        }
        Ok(Interaction { plan, forward, backward, of: PhantomData })
    }

    /// Computes the output `[B, D + P]`, with rows `stride` elements apart, for B = `samples` samples.
    ///
    /// # Errors
    ///
    /// Operands that are too short, or not aligned as compiled for.
    pub fn forward(
        &self,
        stream: &Stream,
        samples: usize,
        features: &Features<'_, T>,
        out: &mut SliceMut<'_, T>,
        stride: usize,
    ) -> Result<(), Error> {
        let vectors = self.vectors(samples, features)?;
        self.check_rows("the output of an interaction", samples, out.len(), stride)?;
        let args = Args::new().value(vectors).slice_mut(out).value(stride as u64).value(samples as u32);
        let args = args.reads(features.dense.0).reads(features.others.0);
        // SAFETY: the arguments are those of the kernel, and their sizes were checked. All memory is named.
        unsafe { self.forward.launch(stream, self.plan.grid(samples, 0), args) }
    }

    /// Computes the gradient of the features from that of the output, `[B, D + P]` with rows `stride` elements apart.
    ///
    /// # Errors
    ///
    /// Operands that are too short, or not aligned as compiled for.
    pub fn backward(
        &self,
        stream: &Stream,
        samples: usize,
        features: &Features<'_, T>,
        gradient: Slice<'_, T>,
        stride: usize,
        to: &mut FeaturesMut<'_, T>,
    ) -> Result<(), Error> {
        let vectors = self.vectors(samples, features)?;
        self.check_rows("the gradient of an interaction", samples, gradient.len(), stride)?;
        let written = Features {
            dense: (to.dense.0.as_ref(), to.dense.1),
            others: (to.others.0.as_ref(), to.others.1),
        };
        let to = self.vectors(samples, &written)?;
        let args = Args::new().value(vectors).slice(gradient).value(stride as u64).value(to);
        let args = args.value(samples as u32);
        let args = args.reads(features.dense.0).reads(features.others.0);
        let args = args.writes(written.dense.0).writes(written.others.0);
        // SAFETY: as above; each vector is written by one warp.
        unsafe { self.backward.launch(stream, self.plan.grid(samples, 1), args) }
    }

    fn vectors(&self, samples: usize, features: &Features<'_, T>) -> Result<Vectors, Error> {
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
        let multiple = strides.iter().all(|stride| (stride * size_of::<T>()).is_multiple_of(16))
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

    /// Launch geometry of its kernels for this number of samples.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self, samples: usize) -> Result<[Geometry; 2], Error> {
        let mut both = self.plan.geometry(samples);
        both[0].registers = Some(self.forward.registers()?);
        both[1].registers = Some(self.backward.registers()?);
        Ok(both)
    }
}
