//! A stretch of bags of one table, checked and ready for a kernel.

use std::ops::Range;

use crate::embedding::{Element, Ints, Lookups, Pooling, Table};
use crate::shared::Shared;

/// Number of lookups after a chunk whose rows are known, for prefetching.
pub(super) const PEEK: usize = 192;

/// Bytes on their way from memory ahead of the row in use: bandwidth of a core times latency.
pub(super) const BYTES_AHEAD: usize = 12 << 10;

/// A column range of the rows of a table, as wide as a kernel's registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    /// First column of the slice.
    pub(super) column: usize,
    /// Number of columns.
    pub(super) columns: usize,
    /// Byte of the row where the slice begins.
    pub(super) byte: usize,
    /// Bytes of the slice.
    pub(super) bytes: usize,
}

impl Slice {
    /// A slice of these columns of a table, the first of which is even.
    pub(super) fn new(table: &Table<'_>, columns: Range<usize>) -> Slice {
        let (column, columns) = (columns.start, columns.len());
        let (byte, bytes) = match table.element() {
            Element::F32 => (column * 4, columns * 4),
            Element::F16 | Element::Bf16 => (column * 2, columns * 2),
            Element::Int8(scale) => (scale.bytes() + column, columns),
            Element::Int4(scale) => (scale.bytes() + column / 2, columns.div_ceil(2)),
        };
        Slice { column, columns, byte, bytes }
    }

    /// Number of rows between the prefetched one and the one in use.
    pub(super) fn ahead(self) -> usize {
        (BYTES_AHEAD / self.bytes.next_multiple_of(64)).clamp(1, PEEK)
    }

    /// Cuts a range of columns, whose first is even, into slices of at most `most` vectors of `lanes` floats.
    pub(super) fn cut(
        table: &Table<'_>,
        range: Range<usize>,
        lanes: usize,
        most: usize,
    ) -> impl Iterator<Item = Slice> {
        let mut column = range.start;
        std::iter::from_fn(move || {
            let vectors = match (range.end - column).div_ceil(lanes) {
                0 => return None,
                left if left >= most => most,
                // Kernels exist for few widths: two slices of nearly the same width are better than a narrow rest.
                left if left > 8 => left.div_ceil(2),
                left => left,
            };
            let slice = Slice::new(table, column..(column + vectors * lanes).min(range.end));
            column += slice.columns;
            Some(slice)
        })
    }
}

/// The bags of a table: its offsets, `[B + 1]`, or without offsets one bag for each lookup.
#[derive(Debug, Clone, Copy)]
pub(in crate::embedding) struct Bags<'a> {
    pub(in crate::embedding) indices: Ints<'a>,
    pub(in crate::embedding) offsets: Option<Ints<'a>>,
    pub(in crate::embedding) weights: Option<&'a [f32]>,
}

impl<'a> Bags<'a> {
    /// The bags of one table of several.
    pub(in crate::embedding) fn from_lookups(lookups: &Lookups<'a>, table: usize) -> Bags<'a> {
        let first = table * lookups.bags();
        let offsets = lookups.offsets().slice(first..first + lookups.bags() + 1);
        Bags { indices: lookups.indices(), offsets: Some(offsets), weights: lookups.weights() }
    }

    /// The places of a bag's indices.
    #[inline]
    pub(in crate::embedding) fn bag(&self, bag: usize) -> Range<usize> {
        match self.offsets {
            Some(offsets) => offsets.at(bag) as usize..offsets.at(bag + 1) as usize,
            None => bag..bag + 1,
        }
    }
}

/// Bags of one table, with the rows of their lookups.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    pub(super) source: Bags<'a>,
    pub(super) table: &'a Table<'a>,
    pub(super) pooling: Pooling,
    /// The columns to pool.
    pub(super) columns: Range<usize>,
    /// The bags.
    pub(super) bags: Range<usize>,
    /// First byte of the row of each lookup, and then of [`PEEK`] more lookups, which are not checked.
    pub(super) rows: &'a [u64],
    /// Number of lookups up to the end of each bag.
    pub(super) ends: &'a [usize],
    /// Weights of the lookups.
    pub(super) weights: Option<&'a [f32]>,
}

/// Output of one table.
#[derive(Clone, Copy)]
pub(in crate::embedding) struct Output<'a> {
    pub(in crate::embedding) out: Shared<'a, f32>,
    pub(in crate::embedding) stride: usize,
    /// First column of the table.
    pub(in crate::embedding) column: usize,
    /// Whether stores bypass the caches, for an output that is not read before it would be evicted.
    pub(in crate::embedding) stream: bool,
}

impl<'a> Output<'a> {
    /// A slice of the row of a bag.
    ///
    /// # Safety
    ///
    /// No other code holds these columns of this bag.
    #[inline]
    pub(super) unsafe fn row(&self, bag: usize, slice: Slice) -> &'a mut [f32] {
        // SAFETY: disjoint by the caller's promise.
        unsafe { self.out.range(bag * self.stride + self.column + slice.column, slice.columns) }
    }
}

/// Writes the first byte of each index's row, and returns whether all indices are below `rows`. Inlined into functions
/// with wider instructions, for which it is vectorized.
#[inline(always)]
pub(super) fn translate(indices: Ints<'_>, rows: u64, pitch: u64, out: &mut [u64]) -> bool {
    let mut good = true;
    let mut one = |index: u64, out: &mut u64| {
        good &= index < rows;
        *out = index.wrapping_mul(pitch);
    };
    match indices {
        Ints::I32(all) => all.iter().zip(out).for_each(|(&index, out)| one(i64::from(index) as u64, out)),
        Ints::I64(all) => all.iter().zip(out).for_each(|(&index, out)| one(index as u64, out)),
    }
    good
}
