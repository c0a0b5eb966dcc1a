//! Sizes for which a pass over bags is compiled.

use super::Lookups;

/// Sizes for which a forward pass is compiled, in addition to its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of bags, B.
    pub bags: usize,
    /// Expected number of lookups of all tables, N, which decides how bags are spread.
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
    /// The sizes of these lookups, with an output whose rows are `stride` elements apart.
    #[must_use]
    pub fn from_lookups(lookups: &Lookups<'_>, stride: usize) -> Sizes {
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
