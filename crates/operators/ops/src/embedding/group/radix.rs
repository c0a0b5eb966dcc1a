//! Radix sort of lookups by row: stable, a digit at a time from the lowest.

use std::ops::Range;

use super::super::{Ints, Lookups};
use crate::Cpu;
use crate::shared::Shared;

/// Lookups that one part of a large table's sort moves.
pub(super) const CHUNK: usize = 32 << 10;

/// Where the bits of a key are.
pub(super) struct Layout {
    /// E.
    pub(super) rows: usize,
    pub(super) row_bits: u32,
    pub(super) position_bits: u32,
    pub(super) bag_bits: u32,
}

impl Layout {
    /// Bits below the row.
    pub(super) fn shift(&self) -> u32 {
        self.position_bits + self.bag_bits
    }
}

/// Memory that is kept from sort to sort.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    keys: Vec<u64>,
    counts: Vec<u32>,
}

/// The lookups of one table.
pub(super) struct Source<'a> {
    indices: Ints<'a>,
    /// B + 1 of them.
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

    fn bags(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The positions of a bag's lookups.
    pub(super) fn positions(&self, bag: usize) -> Range<usize> {
        self.offsets.at(bag) as usize - self.start..self.offsets.at(bag + 1) as usize - self.start
    }

    /// The bag where the `chunk`-th part of the lookups begins.
    fn first_bag(&self, chunk: usize) -> usize {
        let (mut low, mut high) = (0, self.bags());
        while low < high {
            let middle = (low + high) / 2;
            if self.positions(middle).start < chunk * CHUNK { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Calls `work` with position, bag and row of each lookup of these bags that is in range.
    #[inline(always)]
    fn each(&self, rows: usize, bags: Range<usize>, mut work: impl FnMut(usize, usize, usize)) {
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

/// Bits of a digit that make a sort of this many keys the cheapest: each pass moves all keys, and visits all its counts.
fn digit_bits(row_bits: u32, keys: usize) -> u32 {
    let cost = |bits: &u32| row_bits.div_ceil(*bits) as usize * (keys + (1usize << bits));
    (4..=11).min_by_key(cost).unwrap_or(8).min(row_bits.max(1))
}

/// Keys to be moved, cut into chunks.
trait Keys: Sync {
    /// Calls `work` with the keys of a chunk in order.
    fn each(&self, chunk: usize, work: impl FnMut(u64));
}

/// Keys that are made of lookups.
struct Unsorted<'a> {
    source: &'a Source<'a>,
    layout: &'a Layout,
    chunks: usize,
}

impl Keys for Unsorted<'_> {
    #[inline(always)]
    fn each(&self, chunk: usize, mut work: impl FnMut(u64)) {
        let first = |chunk: usize| if chunk == 0 { 0 } else { self.source.first_bag(chunk) };
        let end = if chunk + 1 == self.chunks { self.source.bags() } else { first(chunk + 1) };
        let layout = self.layout;
        self.source.each(layout.rows, first(chunk)..end, |position, bag, row| {
            let bag = if layout.bag_bits == 0 { 0 } else { bag as u64 };
            // Two shifts, for together they may be as many as all bits.
            let row = (row as u64) << layout.position_bits << layout.bag_bits;
            work(row | (position as u64) << layout.bag_bits | bag);
        });
    }
}

/// Keys sorted by lower digits.
struct Sorted<'a> {
    keys: &'a [u64],
    chunks: usize,
}

impl Keys for Sorted<'_> {
    #[inline(always)]
    fn each(&self, chunk: usize, work: impl FnMut(u64)) {
        let end = if chunk + 1 == self.chunks { self.keys.len() } else { (chunk + 1) * CHUNK };
        let end = end.min(self.keys.len());
        self.keys[end.min(chunk * CHUNK)..end].iter().copied().for_each(work);
    }
}

/// Where a digit is in a key.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    bits: u32,
}

impl Digit {
    #[inline(always)]
    fn of(self, key: u64) -> usize {
        key.checked_shr(self.shift).unwrap_or(0) as usize & ((1 << self.bits) - 1)
    }
}

/// Moves keys to `to` in the order of a digit, those with the same one in the order they have; the number of keys.
/// Chunks are done by all threads of `cpu`, or by this one.
fn pass(
    cpu: Option<&Cpu>,
    from: &impl Keys,
    digit: Digit,
    chunks: usize,
    counts: &mut Vec<u32>,
    to: &mut [u64],
) -> usize {
    let each_chunk = |work: &(dyn Fn(usize) + Sync)| match cpu {
        Some(cpu) => cpu.run(chunks, work),
        None => (0..chunks).for_each(work),
    };
    let buckets = 1 << digit.bits;
    counts.clear();
    counts.resize(chunks * buckets, 0);
    let shared = Shared::new(counts);
    each_chunk(&|chunk| {
        // SAFETY: each chunk has counts of its own, and is done once.
        let counts = unsafe { shared.range(chunk * buckets, buckets) };
        from.each(chunk, |key| counts[digit.of(key)] += 1);
    });
    let total = place(counts, buckets);
    let (shared, to) = (Shared::new(counts), Shared::new(to));
    each_chunk(&|chunk| {
        // SAFETY: each chunk has counts of its own, and is done once.
        let counts = unsafe { shared.range(chunk * buckets, buckets) };
        from.each(chunk, |key| {
            let count = &mut counts[digit.of(key)];
            // SAFETY: the counts are of the same keys, chunk by chunk and digit by digit, and `place` made them the
            // places where those of each chunk and digit begin: so every key has a place of its own.
            unsafe { to.range(*count as usize, 1)[0] = key };
            *count += 1;
        });
    });
    total
}

/// Makes `keys` the keys of all lookups in range, sorted by row, then position.
pub(super) fn sort(
    cpu: Option<&Cpu>,
    source: &Source<'_>,
    layout: &Layout,
    keys: &mut Vec<u64>,
    scratch: &mut Scratch,
) {
    let lookups = source.indices.len();
    let bits = digit_bits(layout.row_bits, lookups);
    let chunks = if cpu.is_some() { lookups.div_ceil(CHUNK).max(1) } else { 1 };
    keys.resize(lookups, 0);
    scratch.keys.resize(lookups, 0);
    let low = layout.shift();
    let unsorted = Unsorted { source, layout, chunks };
    let total = pass(cpu, &unsorted, Digit { shift: low, bits }, chunks, &mut scratch.counts, keys);
    for at in 1..layout.row_bits.div_ceil(bits) {
        let digit = Digit { shift: low + at * bits, bits };
        let sorted = Sorted { keys: &keys[..total], chunks };
        pass(cpu, &sorted, digit, chunks, &mut scratch.counts, &mut scratch.keys);
        std::mem::swap(keys, &mut scratch.keys);
    }
    keys.truncate(total);
}

/// Turns counts, `[chunks, buckets]`, into the place of each chunk's first key of each bucket; the total.
fn place(counts: &mut [u32], buckets: usize) -> usize {
    let mut next = 0;
    if counts.len() == buckets {
        for count in counts {
            next += std::mem::replace(count, next);
        }
        return next as usize;
    }
    for bucket in 0..buckets {
        for count in counts[bucket..].iter_mut().step_by(buckets) {
            next += std::mem::replace(count, next);
        }
    }
    next as usize
}

/// Makes `starts` the first place of each row among sorted keys, then their number.
pub(super) fn starts(keys: &[u64], shift: u32, starts: &mut Vec<u32>) {
    starts.resize(keys.len() + 1, 0);
    let mut found = 0;
    let mut before = None;
    for (at, key) in keys.iter().enumerate() {
        let row = key.checked_shr(shift).unwrap_or(0);
        // Written always and kept where the row is new: rows change too irregularly for a branch.
        starts[found] = at as u32;
        found += usize::from(before != Some(row));
        before = Some(row);
    }
    starts[found] = keys.len() as u32;
    starts.truncate(found + 1);
}
