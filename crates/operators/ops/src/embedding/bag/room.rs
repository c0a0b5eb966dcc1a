//! Making of chunks: bags are cut off, and their indices are checked and converted to addresses.

use std::ops::Range;

use super::chunk::{Bags, Chunk, PEEK};
use super::dispatch;
use crate::arch::Arch;
use crate::embedding::{Pooling, Table};

/// Number of lookups of a chunk: enough that its fixed cost does not matter, and few enough that the addresses of their
/// rows stay in the first-level cache.
const LOOKUPS: usize = 1024;

/// Buffers of a chunk.
#[derive(Debug, Default)]
pub(super) struct Room {
    rows: Vec<u64>,
    ends: Vec<usize>,
}

impl Room {
    /// Returns the chunk that begins with the first of `bags`, whose offsets increase, and whether its indices are in
    /// range.
    pub(super) fn fill<'a>(
        &'a mut self,
        arch: Arch,
        source: Bags<'a>,
        (table, pooling, columns): (&'a Table<'a>, Pooling, Range<usize>),
        bags: Range<usize>,
    ) -> (Chunk<'a>, bool) {
        let start = source.bag(bags.start).start;
        self.ends.clear();
        for bag in bags.clone() {
            let end = source.bag(bag).end - start;
            if end > LOOKUPS && bag > bags.start {
                break;
            }
            self.ends.push(end);
        }
        let bags = bags.start..bags.start + self.ends.len();
        let places = start..start + self.ends.last().copied().unwrap_or(0);
        let peek = places.end..(places.end + PEEK).min(source.indices.len());
        self.rows.resize(places.len() + PEEK, 0);
        let (own, further) = self.rows.split_at_mut(places.len());
        let (count, pitch) = (table.rows() as u64, table.pitch() as u64);
        let good = dispatch::translate(arch, source.indices.slice(places.clone()), count, pitch, own);
        dispatch::translate(
            arch,
            source.indices.slice(peek.clone()),
            count,
            pitch,
            &mut further[..peek.len()],
        );
        // Where there is nothing more to prefetch, the last row is prefetched again, which costs nothing.
        further[peek.len()..].fill(own.last().copied().unwrap_or(0));
        let weights = source.weights.map(|all| &all[places]);
        let (rows, ends) = (&self.rows[..], &self.ends[..]);
        (Chunk { source, table, pooling, columns, bags, rows, ends, weights }, good)
    }
}
