//! Radix sort of lookups by row: stable, a digit at a time from the lowest.

use std::ops::Range;

use super::super::{Ints, Lookups};

/// Bits of a sort key, from the highest: row, position, bag.
pub(super) struct Layout {
    /// Number of rows, E.
    pub(super) rows: usize,
    pub(super) row_bits: u32,
    pub(super) position_bits: u32,
    pub(super) bag_bits: u32,
}

impl Layout {
    /// Number of bits below the row.
    pub(super) fn shift(&self) -> u32 {
        self.position_bits + self.bag_bits
    }

    /// The key of a lookup.
    #[inline(always)]
    pub(super) fn key(&self, position: usize, bag: usize, row: usize) -> u64 {
        let bag = if self.bag_bits == 0 { 0 } else { bag as u64 };
        // Two shifts, since a single shift by all 64 bits would overflow.
        (row as u64) << self.position_bits << self.bag_bits | (position as u64) << self.bag_bits | bag
    }
}

/// Memory that is kept from sort to sort.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    keys: Vec<u64>,
    counts: Vec<u32>,
    pub(super) kept: SortScratch,
}

/// Reused buffers of a sort on all threads.
#[derive(Debug, Default)]
pub(super) struct SortScratch {
    /// First row of each range, except of the first range.
    pub(super) splitters: Vec<u64>,
    /// The range of each position.
    pub(super) ranges: Vec<u8>,
    /// Number of lookups per chunk and range; in a later stage, their destinations.
    pub(super) counts: Vec<u32>,
    /// The beginning of each range, and the end of the last.
    pub(super) bounds: Vec<u32>,
    /// Number of distinct rows per range; in a later stage, the destinations of their starts.
    pub(super) distinct: Vec<u32>,
}

/// The lookups of one table.
pub(super) struct Source<'a> {
    indices: Ints<'a>,
    /// B + 1 offsets.
    offsets: Ints<'a>,
    start: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(lookups: &Lookups<'a>, table: usize) -> Source<'a> {
        let (first, bags) = (table * lookups.bags(), lookups.bags());
        let places = lookups.table(table);
        let start = places.start;
        Source {
            indices: lookups.indices().slice(places),
            offsets: lookups.offsets().slice(first..first + bags + 1),
            start,
        }
    }

    /// Number of bags, B.
    pub(super) fn bags(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of lookups.
    pub(super) fn len(&self) -> usize {
        self.indices.len()
    }

    /// The row of the lookup at a position; a negative row wraps to a number far out of range.
    pub(super) fn row(&self, position: usize) -> u64 {
        self.indices.at(position) as u64
    }

    /// The positions of some bags' lookups.
    pub(super) fn places(&self, bags: &Range<usize>) -> Range<usize> {
        self.offsets.at(bags.start) as usize - self.start..self.offsets.at(bags.end) as usize - self.start
    }

    /// The positions of a bag's lookups.
    pub(super) fn positions(&self, bag: usize) -> Range<usize> {
        self.offsets.at(bag) as usize - self.start..self.offsets.at(bag + 1) as usize - self.start
    }

    /// The first bag that begins at this position or later.
    pub(super) fn first_bag(&self, position: usize) -> usize {
        let (mut low, mut high) = (0, self.bags());
        while low < high {
            let middle = (low + high) / 2;
            if self.positions(middle).start < position { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Calls `work` with position, bag and row of each lookup of these bags whose row is below `rows`.
    #[inline(always)]
    pub(super) fn each(&self, rows: usize, bags: Range<usize>, mut work: impl FnMut(usize, usize, usize)) {
        let mut visit = |bag: usize, position: usize, row: u64| {
            if row < rows as u64 {
                work(position, bag, row as usize);
            }
        };
        for bag in bags {
            let positions = self.positions(bag);
            match self.indices {
                Ints::I32(indices) => {
                    let first = positions.start;
                    let indices = indices[positions].iter().enumerate();
                    indices.for_each(|(at, &row)| visit(bag, first + at, i64::from(row) as u64));
                }
                Ints::I64(indices) => {
                    let first = positions.start;
                    let indices = indices[positions].iter().enumerate();
                    indices.for_each(|(at, &row)| visit(bag, first + at, row as u64));
                }
            }
        }
    }
}

/// Digit width at which a sort of this many keys costs least: each pass moves all keys and visits one count per digit
/// value.
fn digit_bits(row_bits: u32, keys: usize) -> u32 {
    let cost = |bits: &u32| row_bits.div_ceil(*bits) as usize * (keys + (1usize << bits));
    (4..=11).min_by_key(cost).unwrap_or(8).min(row_bits.max(1))
}

/// A source of keys to move.
trait Keys {
    /// Calls `work` with each in order.
    fn each(&self, work: impl FnMut(u64));
}

/// Keys made from lookups.
struct UnsortedKeys<'a> {
    source: &'a Source<'a>,
    layout: &'a Layout,
}

impl Keys for UnsortedKeys<'_> {
    #[inline(always)]
    fn each(&self, mut work: impl FnMut(u64)) {
        let (layout, bags) = (self.layout, self.source.bags());
        self.source.each(layout.rows, 0..bags, |position, bag, row| work(layout.key(position, bag, row)));
    }
}

/// Keys sorted by lower digits.
struct SortedKeys<'a>(&'a [u64]);

impl Keys for SortedKeys<'_> {
    #[inline(always)]
    fn each(&self, work: impl FnMut(u64)) {
        self.0.iter().copied().for_each(work);
    }
}

/// Position of a digit in a key.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    bits: u32,
}

impl Digit {
    #[inline(always)]
    fn extract(self, key: u64) -> usize {
        key.checked_shr(self.shift).unwrap_or(0) as usize & ((1 << self.bits) - 1)
    }
}

/// Moves keys to `to` in the order of a digit, stably, and returns their number.
fn pass(from: &impl Keys, digit: Digit, counts: &mut Vec<u32>, to: &mut [u64]) -> usize {
    counts.clear();
    counts.resize(1 << digit.bits, 0);
    from.each(|key| counts[digit.extract(key)] += 1);
    let mut next = 0;
    for count in counts.iter_mut() {
        next += std::mem::replace(count, next);
    }
    from.each(|key| {
        let count = &mut counts[digit.extract(key)];
        to[*count as usize] = key;
        *count += 1;
    });
    next as usize
}

/// Fills `keys` with the keys of all lookups in range, sorted by row, then position.
pub(super) fn sort(source: &Source<'_>, layout: &Layout, keys: &mut Vec<u64>, scratch: &mut Scratch) {
    let lookups = source.indices.len();
    let bits = digit_bits(layout.row_bits, lookups);
    keys.resize(lookups, 0);
    scratch.keys.resize(lookups, 0);
    let low = layout.shift();
    let unsorted = UnsortedKeys { source, layout };
    let total = pass(&unsorted, Digit { shift: low, bits }, &mut scratch.counts, keys);
    for at in 1..layout.row_bits.div_ceil(bits) {
        let digit = Digit { shift: low + at * bits, bits };
        pass(&SortedKeys(&keys[..total]), digit, &mut scratch.counts, &mut scratch.keys);
        std::mem::swap(keys, &mut scratch.keys);
    }
    keys.truncate(total);
}

/// Fills `starts` with the first place of each row among sorted keys, followed by the number of keys.
pub(super) fn starts(keys: &[u64], shift: u32, starts: &mut Vec<u32>) {
    starts.resize(keys.len() + 1, 0);
    let mut found = 0;
    let mut before = None;
    for (at, key) in keys.iter().enumerate() {
        let row = key.checked_shr(shift).unwrap_or(0);
        // Written every time and kept only if the row is new: a branch would often be mispredicted.
        starts[found] = at as u32;
        found += usize::from(before != Some(row));
        before = Some(row);
    }
    starts[found] = keys.len() as u32;
    starts.truncate(found + 1);
}
