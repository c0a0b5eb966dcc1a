//! Runs an interaction over a batch: assigns samples to threads, and each sample's vectors to slices.

use std::ops::Range;

use steptime_tensor::{View, ViewMut};

use super::features::check;
use super::sample::{Backward, Forward};
use super::{Features, FeaturesMut, Interaction, InteractionError};
use crate::Cpu;
use crate::shared::Shared;
use crate::simd::{fence, prefetch_row};

/// Number of samples of one part of the work: a few hundred kilobytes, so that the cost of starting a part does not
/// matter.
const PART: usize = 16;

/// Bytes of gradients from which they are written past the caches: otherwise they would evict data that is still
/// needed, and every line would be read before it is written. See the `interaction` benchmark.
const STREAM_BYTES: usize = 8 << 20;

impl Interaction {
    /// Computes the output, `B x (D + P)`, of the features.
    ///
    /// # Errors
    ///
    /// Shapes that do not match, or operands that are not contiguous along their last dimension.
    pub fn forward(
        &self,
        cpu: &Cpu,
        features: &Features<'_>,
        mut out: ViewMut<'_, f32>,
    ) -> Result<(), InteractionError> {
        let samples = features.samples();
        let (dense, pooled) = features.parts(self)?;
        check("output", out.shape(), out.strides(), &[samples, self.columns()])?;
        let vectors = Vectors { dense: &dense, pooled: &pooled };
        let places = Places::rows(&out);
        let to = Shared::new(out.elements_mut());
        let kernel = Forward::new(self, cpu.arch());
        cpu.run(samples.div_ceil(PART), |part| {
            let mut rows = Vec::with_capacity(self.features);
            for sample in part_of(part, samples) {
                vectors.collect(sample, &mut rows);
                vectors.prefetch(sample + 1);
                // SAFETY: a mutable view has no two elements in one place, or it would not have been made; so its rows
                // do not overlap, and each sample is done by one part.
                let out = unsafe { to.range(places.at(sample, 0), self.columns()) };
                kernel.run(&rows, out);
            }
        });
        Ok(())
    }

    /// Computes the gradients of all features from that of the output, `B x (D + P)`.
    ///
    /// # Errors
    ///
    /// Shapes that do not match, or operands that are not contiguous along their last dimension.
    pub fn backward(
        &self,
        cpu: &Cpu,
        features: &Features<'_>,
        gradient: &View<'_, f32>,
        mut out: FeaturesMut<'_>,
    ) -> Result<(), InteractionError> {
        let samples = features.samples();
        let (dense, pooled) = features.parts(self)?;
        check("gradient of output", gradient.shape(), gradient.strides(), &[samples, self.columns()])?;
        out.check(self, samples)?;
        let vectors = Vectors { dense: &dense, pooled: &pooled };
        let of_out = Places::rows(gradient);
        let (first, first_places, rest, rest_places, skip) = match &mut out {
            FeaturesMut::Stacked(all) => {
                let places = Places::rows(all);
                let all = Shared::new(all.elements_mut());
                (all, places, all, places, 0)
            }
            FeaturesMut::Split { dense, pooled } => {
                let (dense_places, pooled_places) = (Places::rows(dense), Places::rows(pooled));
                let (dense, pooled) = (Shared::new(dense.elements_mut()), Shared::new(pooled.elements_mut()));
                (dense, dense_places, pooled, pooled_places, 1)
            }
        };
        let stream = samples * self.features * self.dim * size_of::<f32>() >= STREAM_BYTES;
        let kernel = Backward::new(self, cpu.arch(), stream);
        cpu.run(samples.div_ceil(PART), |part| {
            let mut rows = Vec::with_capacity(self.features);
            let mut grads = Vec::with_capacity(self.features);
            let mut square = vec![0.0; self.features * self.features];
            for sample in part_of(part, samples) {
                vectors.collect(sample, &mut rows);
                vectors.prefetch(sample + 1);
                grads.clear();
                for feature in 0..self.features {
                    let (to, at) = match feature {
                        0 => (&first, first_places.at(sample, 0)),
                        _ => (&rest, rest_places.at(sample, feature - skip)),
                    };
                    // SAFETY: a mutable view has no two elements in one place, or it would not have been made; so its
                    // vectors do not overlap, nor do two views; each sample is done by one part, each vector once.
                    grads.push(unsafe { to.range(at, self.dim) });
                }
                let start = of_out.at(sample, 0);
                let gradient = &gradient.elements()[start..start + self.columns()];
                kernel.run(&rows, gradient, &mut square, &mut grads);
            }
            fence();
        });
        Ok(())
    }
}

fn part_of(part: usize, samples: usize) -> Range<usize> {
    part * PART..samples.min((part + 1) * PART)
}

/// Positions of vectors: offset, and strides of samples and of features.
#[derive(Clone, Copy)]
struct Places {
    offset: usize,
    sample: usize,
    feature: usize,
}

impl Places {
    /// Positions in a view of rank 2 or 3.
    fn rows<S: steptime_tensor::Data>(view: &steptime_tensor::Strided<S>) -> Places {
        let strides = view.strides();
        let feature = if strides.len() == 3 { strides[1] } else { 0 };
        Places { offset: view.offset(), sample: strides[0], feature }
    }

    fn at(&self, sample: usize, feature: usize) -> usize {
        self.offset + sample * self.sample + feature * self.feature
    }
}

/// The vectors of all samples.
struct Vectors<'a, 'b> {
    dense: &'b View<'a, f32>,
    pooled: &'b View<'a, f32>,
}

impl<'b> Vectors<'_, 'b> {
    /// Prefetches the vectors of a sample. Does nothing past the last.
    fn prefetch(&self, sample: usize) {
        if sample >= self.dense.shape()[0] {
            return;
        }
        let dim = self.dense.shape()[1];
        let at = Places::rows(self.dense).at(sample, 0);
        prefetch_row(&self.dense.elements()[at..at + dim]);
        let places = Places::rows(self.pooled);
        for feature in 0..self.pooled.shape()[1] {
            let at = places.at(sample, feature);
            prefetch_row(&self.pooled.elements()[at..at + dim]);
        }
    }

    /// Collects the vectors of one sample, the dense one first.
    fn collect(&self, sample: usize, rows: &mut Vec<&'b [f32]>) {
        let dim = self.dense.shape()[1];
        rows.clear();
        let at = Places::rows(self.dense).at(sample, 0);
        rows.push(&self.dense.elements()[at..at + dim]);
        let places = Places::rows(self.pooled);
        rows.extend((0..self.pooled.shape()[1]).map(|feature| {
            let at = places.at(sample, feature);
            &self.pooled.elements()[at..at + dim]
        }));
    }
}
