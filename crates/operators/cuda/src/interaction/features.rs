//! The vectors of an interaction, and the buffers of their gradients.

use crate::{Float, Slice, SliceMut};

/// Vectors of neighbouring elements, one or more for each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Elements from sample to sample.
    pub sample: usize,
    /// Elements from vector to vector of a sample.
    pub vector: usize,
}

/// The `F` vectors of each sample: the dense one and the others, in one or two buffers.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a, T = f32> {
    pub(super) dense: (Slice<'a, T>, usize),
    pub(super) others: (Slice<'a, T>, Strides),
}

/// Buffers of the gradients of the vectors, all overwritten.
#[derive(Debug)]
pub struct FeaturesMut<'a, T = f32> {
    pub(super) dense: (SliceMut<'a, T>, usize),
    pub(super) others: (SliceMut<'a, T>, Strides),
}

impl<'a, T: Float> Features<'a, T> {
    /// The dense vectors, `stride` elements from sample to sample, and the others.
    #[must_use]
    pub fn split(
        dense: Slice<'a, T>,
        stride: usize,
        others: Slice<'a, T>,
        strides: Strides,
    ) -> Features<'a, T> {
        Features { dense: (dense, stride), others: (others, strides) }
    }
}

impl<'a, T: Float> Features<'a, T> {
    /// All vectors in one buffer, of which the first of each sample is the dense one.
    ///
    /// # Panics
    ///
    /// The buffer is shorter than one vector.
    #[must_use]
    pub fn stacked(vectors: Slice<'a, T>, strides: Strides) -> Features<'a, T> {
        let others = vectors.slice(strides.vector..vectors.len());
        Features { dense: (vectors, strides.sample), others: (others, strides) }
    }
}

impl<'a, T: Float> FeaturesMut<'a, T> {
    /// All vectors in one buffer, of which the first of each sample is the dense one.
    ///
    /// # Panics
    ///
    /// The buffer is shorter than one vector.
    #[must_use]
    pub fn stacked(vectors: SliceMut<'a, T>, strides: Strides) -> FeaturesMut<'a, T> {
        let (_, others) = vectors.again().split_at(strides.vector);
        FeaturesMut { dense: (vectors, strides.sample), others: (others, strides) }
    }
}

impl<'a, T: Float> FeaturesMut<'a, T> {
    /// The dense vectors, `stride` elements from sample to sample, and the others.
    #[must_use]
    pub fn split(
        dense: SliceMut<'a, T>,
        stride: usize,
        others: SliceMut<'a, T>,
        strides: Strides,
    ) -> FeaturesMut<'a, T> {
        FeaturesMut { dense: (dense, stride), others: (others, strides) }
    }
}
