//! The sizes that a pass over bags is compiled for.

use super::Lookups;

/// What a forward pass is compiled for, beside its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// B.
    pub bags: usize,
    /// N, all tables together: about as many as there will be, which decides how bags are spread.
    pub lookups: usize,
    /// Bytes of an index: 4 or 8.
    pub index_width: usize,
    /// Bytes of an offset: 4 or 8.
    pub offset_width: usize,
    /// Whether lookups have weights.
    pub weighted: bool,
    /// Elements from row to row of the output.
    pub stride: usize,
}

impl Sizes {
    /// Those of these lookups, with an output whose rows lie `stride` elements apart.
    #[must_use]
    pub fn of(lookups: &Lookups<'_>, stride: usize) -> Sizes {
        Sizes {
            bags: lookups.bags(),
            lookups: lookups.len(),
            index_width: lookups.indices().width(),
            offset_width: lookups.offsets().width(),
            weighted: lookups.weights().is_some(),
            stride,
        }
    }
}
