//! Lookups of bags.

use std::ops::Range;

use super::{EmbeddingError, Ints};

/// The rows of B bags of each of T tables: bag `b` of table `t` has the indices from offset `t * B + b` to the next.
#[derive(Debug, Clone, Copy)]
pub struct Lookups<'a> {
    bags: usize,
    indices: Ints<'a>,
    offsets: Ints<'a>,
    weights: Option<&'a [f32]>,
}

impl<'a> Lookups<'a> {
    /// Number of offsets of the bags of this many tables: T x B + 1.
    ///
    /// # Errors
    ///
    /// The number overflows.
    pub fn offset_count(tables: usize, bags: usize) -> Result<usize, EmbeddingError> {
        let count = tables.checked_mul(bags).and_then(|pairs| pairs.checked_add(1));
        count.ok_or(EmbeddingError::TooManyBags { tables, bags })
    }

    /// Lookups from indices `[N]`, table by table and bag by bag, and offsets `[T * B + 1]` that increase from 0 to N.
    ///
    /// # Errors
    ///
    /// The number of offsets is not T x `bags` + 1 for any T, or they do not start at 0 and end at N.
    pub fn new(
        bags: usize,
        indices: impl Into<Ints<'a>>,
        offsets: impl Into<Ints<'a>>,
    ) -> Result<Lookups<'a>, EmbeddingError> {
        let (indices, offsets) = (indices.into(), offsets.into());
        let found = offsets.len();
        let pairs = found.saturating_sub(1);
        if found == 0 || (bags == 0 && pairs > 0) || (bags > 0 && !pairs.is_multiple_of(bags)) {
            let tables = pairs.checked_div(bags).unwrap_or(0);
            return Err(EmbeddingError::OffsetCount { found, tables, bags, needed: tables * bags + 1 });
        }
        let wrong = |at, value, before| EmbeddingError::Offset { at, value, before, indices: indices.len() };
        if offsets.at(0) != 0 {
            return Err(wrong(0, offsets.at(0), 0));
        }
        if usize::try_from(offsets.at(pairs)).ok() != Some(indices.len()) {
            return Err(wrong(pairs, offsets.at(pairs), if pairs > 0 { offsets.at(pairs - 1) } else { 0 }));
        }
        Ok(Lookups { bags, indices, offsets, weights: None })
    }

    /// Adds a weight for each lookup, `[N]`, by which its row is multiplied.
    ///
    /// # Errors
    ///
    /// There are not as many weights as indices.
    pub fn with_weights(self, weights: &'a [f32]) -> Result<Lookups<'a>, EmbeddingError> {
        let (found, needed) = (weights.len(), self.indices.len());
        if found != needed {
            return Err(EmbeddingError::WeightCount { found, needed });
        }
        Ok(Lookups { weights: Some(weights), ..self })
    }

    /// Number of bags, B.
    #[must_use]
    pub fn bags(&self) -> usize {
        self.bags
    }

    /// Number of lookups of all bags of all tables, N.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The indices, `[N]`.
    #[must_use]
    pub fn indices(&self) -> Ints<'a> {
        self.indices
    }

    /// The offsets, `[T * B + 1]`.
    #[must_use]
    pub fn offsets(&self) -> Ints<'a> {
        self.offsets
    }

    /// The weights, `[N]`.
    #[must_use]
    pub fn weights(&self) -> Option<&'a [f32]> {
        self.weights
    }

    /// The places of a bag's indices. Valid once the offsets are checked.
    ///
    /// # Panics
    ///
    /// The bag does not exist.
    #[must_use]
    #[inline]
    pub fn bag(&self, table: usize, bag: usize) -> Range<usize> {
        let at = table * self.bags + bag;
        self.offsets.at(at) as usize..self.offsets.at(at + 1) as usize
    }

    /// The places of all indices of a table. Valid once the offsets are checked.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn table(&self, table: usize) -> Range<usize> {
        let at = table * self.bags;
        self.offsets.at(at) as usize..self.offsets.at(at + self.bags) as usize
    }
}
