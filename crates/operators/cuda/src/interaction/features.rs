//! The vectors of an interaction, and the buffers of their gradients.

use crate::{Slice, SliceMut};

/// Vectors of neighbouring floats, one or more for each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Floats from sample to sample.
    pub sample: usize,
    /// Floats from vector to vector of a sample.
    pub vector: usize,
}

/// The `F` vectors of each sample: the dense one and the others, in one or two buffers.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a> {
    pub(super) dense: (Slice<'a, f32>, usize),
    pub(super) others: (Slice<'a, f32>, Strides),
}

/// Buffers of the gradients of the vectors, all overwritten.
#[derive(Debug)]
pub struct FeaturesMut<'a> {
    pub(super) dense: (SliceMut<'a, f32>, usize),
    pub(super) others: (SliceMut<'a, f32>, Strides),
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

impl<'a> Features<'a> {
    /// All vectors in one buffer, of which the first of each sample is the dense one.
    ///
    /// # Panics
    ///
    /// The buffer is shorter than one vector.
    #[must_use]
    pub fn stacked(vectors: Slice<'a, f32>, strides: Strides) -> Features<'a> {
        let others = vectors.slice(strides.vector..vectors.len());
        Features { dense: (vectors, strides.sample), others: (others, strides) }
    }
}

impl<'a> FeaturesMut<'a> {
    /// All vectors in one buffer, of which the first of each sample is the dense one.
    ///
    /// # Panics
    ///
    /// The buffer is shorter than one vector.
    #[must_use]
    pub fn stacked(vectors: SliceMut<'a, f32>, strides: Strides) -> FeaturesMut<'a> {
        let (_, others) = vectors.again().split_at(strides.vector);
        FeaturesMut { dense: (vectors, strides.sample), others: (others, strides) }
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
