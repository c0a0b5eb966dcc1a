//! Dot interaction: the dot products of all pairs of a sample's feature vectors, appended to its dense vector.
//!
//! For each sample, `F` vectors of `D` floats (the output of the bottom network, and one pooled embedding for each
//! table) become `D + P` floats: the first vector itself, then the dot products of the `P` pairs in the order
//! `(1, 0), (2, 0), (2, 1), (3, 0), ...`, that is, the lower triangle of `T x T^T` row by row, as DLRM builds it
//! (Naumov et al. 2019, <https://arxiv.org/abs/1906.00091>). Self interaction adds the diagonal.
//!
//! A framework runs this as concat, batched product, selection of the triangle and concat, with `F x F` products of
//! each sample in memory, of which the upper half is unused. Here a sample's vectors are read once, stay in the
//! first-level cache, and only the triangle is computed. The gradients of all vectors are computed in one pass too.
//!
//! | direction | reads, floats a sample | writes | multiply-adds |
//! |---|---|---|---|
//! | forward | `F D` | `D + P` | `P D` |
//! | backward | `F D + D + P` | `F D` | `F^2 D` |

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod dots;
mod driver;
mod error;
mod features;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod product;
pub mod reference;
mod sample;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod triangle;

pub use error::InteractionError;
pub use features::{Features, FeaturesMut};

/// A dot interaction of `F` vectors of `D` floats a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interaction {
    features: usize,
    dim: usize,
    self_interaction: bool,
}

impl Interaction {
    /// An interaction of `features` vectors a sample, the dense one included, each of `dim` floats; with or without the
    /// dot product of each vector with itself.
    ///
    /// # Errors
    ///
    /// No feature, dimension 0, or an output that exceeds the address space.
    pub fn new(features: usize, dim: usize, self_interaction: bool) -> Result<Interaction, InteractionError> {
        let fits = features.checked_mul(features).and_then(|square| square.checked_add(dim)).is_some();
        if features == 0 || dim == 0 || !fits || features.checked_mul(dim).is_none() {
            return Err(InteractionError::Size { features, dim });
        }
        Ok(Interaction { features, dim, self_interaction })
    }

    /// Number of vectors of a sample, the dense one included.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// Number of floats of a vector.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Whether the diagonal is part of the output.
    #[must_use]
    pub fn self_interaction(&self) -> bool {
        self.self_interaction
    }

    /// Number of pairs of a sample: `F (F - 1) / 2`, or `F (F + 1) / 2` with self interaction.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.row_start(self.features)
    }

    /// Number of floats of a sample's output: `D` and the pairs.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.dim + self.pairs()
    }

    /// Number of pairs whose larger member is vector `row`.
    fn row_len(&self, row: usize) -> usize {
        row + usize::from(self.self_interaction)
    }

    /// Index of the first of these pairs.
    fn row_start(&self, row: usize) -> usize {
        row * (row + 1) / 2 - if self.self_interaction { 0 } else { row }
    }

    /// Number of floating-point operations that the forward pass needs, for this many samples.
    #[must_use]
    pub fn forward_flops(&self, samples: usize) -> u64 {
        2 * (samples * self.pairs() * self.dim) as u64
    }

    /// Number of floating-point operations of the backward pass, for this many samples.
    #[must_use]
    pub fn backward_flops(&self, samples: usize) -> u64 {
        2 * (samples * self.features * self.features * self.dim) as u64
    }

    /// Bytes that the forward pass must move, for this many samples.
    #[must_use]
    pub fn forward_bytes(&self, samples: usize) -> u64 {
        4 * (samples * (self.features * self.dim + self.columns())) as u64
    }

    /// Bytes that the backward pass must move, for this many samples.
    #[must_use]
    pub fn backward_bytes(&self, samples: usize) -> u64 {
        4 * (samples * (2 * self.features * self.dim + self.columns())) as u64
    }
}
