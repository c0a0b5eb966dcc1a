//! The vectors of a batch of samples, with any layout.

use steptime_tensor::{View, ViewMut};

use super::{Interaction, InteractionError};

/// The `F` vectors of each sample: one view of all of them, or separate views of the dense vectors and the pooled
/// embeddings.
///
/// Only the last dimension must be contiguous. For tables that each pooled `B x D` into one `T x B x D` buffer, pass
/// its transposed view.
#[derive(Debug, Clone)]
pub enum Features<'a> {
    /// `B x F x D`, the dense vector first.
    Stacked(View<'a, f32>),
    /// Separate views of the dense vectors and the others.
    Split {
        /// `B x D`.
        dense: View<'a, f32>,
        /// `B x (F - 1) x D`.
        pooled: View<'a, f32>,
    },
}

/// Outputs for the gradients of the vectors: shaped like [`Features`], all overwritten.
#[derive(Debug)]
pub enum FeaturesMut<'a> {
    /// `B x F x D`, the dense vector first.
    Stacked(ViewMut<'a, f32>),
    /// Separate views of the dense vectors and the others.
    Split {
        /// `B x D`.
        dense: ViewMut<'a, f32>,
        /// `B x (F - 1) x D`.
        pooled: ViewMut<'a, f32>,
    },
}

impl<'a> Features<'a> {
    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> usize {
        match self {
            Features::Stacked(all) => all.shape().first().copied().unwrap_or(0),
            Features::Split { dense, .. } => dense.shape().first().copied().unwrap_or(0),
        }
    }

    /// Returns the dense vectors `B x D` and the others `B x (F - 1) x D`, checked.
    pub(super) fn parts(&self, of: &Interaction) -> Result<(View<'a, f32>, View<'a, f32>), InteractionError> {
        let (samples, f, d) = (self.samples(), of.features, of.dim);
        match self {
            Features::Stacked(all) => {
                check("features", all.shape(), all.strides(), &[samples, f, d])?;
                Ok((all.clone().select(1, 0)?, all.clone().slice(1, 1..f)?))
            }
            Features::Split { dense, pooled } => {
                check("dense", dense.shape(), dense.strides(), &[samples, d])?;
                check("pooled", pooled.shape(), pooled.strides(), &[samples, f - 1, d])?;
                Ok((dense.clone(), pooled.clone()))
            }
        }
    }
}

impl FeaturesMut<'_> {
    pub(super) fn check(&self, of: &Interaction, samples: usize) -> Result<(), InteractionError> {
        let (f, d) = (of.features, of.dim);
        match self {
            FeaturesMut::Stacked(all) => {
                check("gradients of features", all.shape(), all.strides(), &[samples, f, d])
            }
            FeaturesMut::Split { dense, pooled } => {
                check("gradient of dense", dense.shape(), dense.strides(), &[samples, d])?;
                check("gradient of pooled", pooled.shape(), pooled.strides(), &[samples, f - 1, d])
            }
        }
    }
}

/// Checks that an operand has this shape, and contiguous vectors along the last dimension.
pub(super) fn check(
    operand: &'static str,
    shape: &[usize],
    strides: &[usize],
    expected: &[usize],
) -> Result<(), InteractionError> {
    if shape != expected {
        return Err(InteractionError::Shape { operand, given: shape.to_vec(), expected: expected.to_vec() });
    }
    match (shape.last(), strides.last()) {
        (Some(&size), Some(&stride)) if size > 1 && stride != 1 => {
            Err(InteractionError::Stride { operand, stride })
        }
        _ => Ok(()),
    }
}
