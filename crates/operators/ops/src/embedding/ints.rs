//! Indices and offsets of either width.

use std::ops::Range;

/// Integers of 32 or 64 bits.
#[derive(Debug, Clone, Copy)]
pub enum Ints<'a> {
    /// 32 bits each.
    I32(&'a [i32]),
    /// 64 bits each.
    I64(&'a [i64]),
}

impl<'a> Ints<'a> {
    /// Number of integers.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Ints::I32(ints) => ints.len(),
            Ints::I64(ints) => ints.len(),
        }
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The number at this place.
    ///
    /// # Panics
    ///
    /// The place does not exist.
    #[must_use]
    #[inline]
    pub fn at(self, place: usize) -> i64 {
        match self {
            Ints::I32(ints) => i64::from(ints[place]),
            Ints::I64(ints) => ints[place],
        }
    }

    /// The integers at these places.
    ///
    /// # Panics
    ///
    /// The range is out of bounds.
    #[must_use]
    pub fn slice(self, places: Range<usize>) -> Ints<'a> {
        match self {
            Ints::I32(ints) => Ints::I32(&ints[places]),
            Ints::I64(ints) => Ints::I64(&ints[places]),
        }
    }

    /// Bytes of one integer.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Ints::I32(_) => 4,
            Ints::I64(_) => 8,
        }
    }
}

impl<'a> From<&'a [i32]> for Ints<'a> {
    fn from(ints: &'a [i32]) -> Ints<'a> {
        Ints::I32(ints)
    }
}

impl<'a> From<&'a [i64]> for Ints<'a> {
    fn from(ints: &'a [i64]) -> Ints<'a> {
        Ints::I64(ints)
    }
}

impl<'a> From<&'a Vec<i32>> for Ints<'a> {
    fn from(ints: &'a Vec<i32>) -> Ints<'a> {
        Ints::I32(ints)
    }
}

impl<'a> From<&'a Vec<i64>> for Ints<'a> {
    fn from(ints: &'a Vec<i64>) -> Ints<'a> {
        Ints::I64(ints)
    }
}
