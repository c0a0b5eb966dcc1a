//! Lookups grouped by row, once for forward and backward.
//!
//! A lookup is one 64-bit key, `row | position | bag` from the highest bit down; sorting the keys by row brings the
//! lookups of a row together, in their order. Positions count from the table's first lookup.

mod radix;
mod ranges;

use std::mem;
use std::ops::Range;

use super::{Bounds, EmbeddingError, Lookups, Report, Table, Tables};
use crate::Cpu;
use crate::shared::Shared;
use radix::{Scratch, Source};

/// The distinct rows of each table, and their lookups. Memory is kept from call to call.
#[derive(Debug, Default)]
pub struct Grouping {
    tables: Vec<Groups>,
    spare: Vec<Scratch>,
}

/// The lookups of one table, sorted by row and then by position. Out-of-range lookups are left out.
///
/// The backward pass relies on no two groups having the same row. So shape and keys change together: a call that fails
/// changes neither.
#[derive(Debug)]
pub struct Groups {
    shape: Shape,
    keys: Vec<u64>,
    /// The first key of each distinct row, then the number of keys.
    starts: Vec<u32>,
    /// The bag of each position, where it does not fit the keys.
    bag_of: Vec<u32>,
}

/// The grouped sizes, and the layout of the keys.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    rows: usize,
    bags: usize,
    lookups: usize,
    position_bits: u32,
    bag_bits: u32,
}

/// Number of bits that hold all of `0..count`.
fn bits(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

impl Grouping {
    /// Empty, to be filled by [`group`](Grouping::group).
    #[must_use]
    pub fn new() -> Grouping {
        Grouping::default()
    }

    /// Groups the lookups of all tables. The result is the same with any number of threads.
    ///
    /// # Errors
    ///
    /// Lookups that do not fit the tables, see [`Lookups::check`]; more lookups of one table than fit the keys. The
    /// previous grouping is then kept.
    pub fn group(
        &mut self,
        cpu: &Cpu,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        bounds: Bounds,
    ) -> Result<Report, EmbeddingError> {
        let report = lookups.check(cpu, tables, bounds)?;
        let shape = |(table, of): (usize, &Table<'_>)| {
            let (rows, found) = (of.rows(), lookups.table(table).len());
            let shape = Shape::new(rows, lookups.bags(), found);
            shape.ok_or_else(|| EmbeddingError::TooMany { table: of.name().to_owned(), rows, lookups: found })
        };
        let shapes = tables.iter().enumerate().map(shape).collect::<Result<Vec<_>, _>>()?;
        // Nothing fails from here on. After a panic the grouping is empty.
        let mut all = mem::take(&mut self.tables);
        all.resize_with(tables.len(), Groups::empty);
        self.spare.resize_with(tables.len(), Scratch::default);
        all.iter_mut().zip(shapes).for_each(|(groups, shape)| groups.shape = shape);
        // A table with more than half its share of the lookups is sorted by all threads, the others by one thread each.
        let large = |groups: &Groups| {
            let found = groups.lookups();
            let threads = cpu.threads();
            threads >= ranges::LEAST_THREADS && found >= ranges::LARGE && 2 * found > lookups.len() / threads
        };
        let source = |table| Source::new(lookups, table);
        let chunk = ranges::chunk(lookups.len(), cpu.threads());
        let (mut small, mut jobs, mut sorted) = (Vec::new(), Vec::new(), Vec::new());
        for (table, (groups, spare)) in all.iter_mut().zip(&mut self.spare).enumerate() {
            if large(groups) {
                jobs.push(ranges::Job::new(source(table), groups, spare, chunk));
                sorted.push(table);
            } else {
                small.push((table, groups, spare));
            }
        }
        let count = small.len();
        let small = Shared::new(&mut small);
        let found = ranges::sort(cpu, &jobs, count, |at| {
            // SAFETY: each table is done once.
            let (table, groups, spare) = unsafe { &mut small.range(at, 1)[0] };
            groups.fill(&source(*table), spare);
        });
        for (table, (keys, distinct)) in sorted.into_iter().zip(found) {
            all[table].keys.truncate(keys);
            all[table].starts.truncate(distinct);
            all[table].starts.push(keys as u32);
        }
        self.tables = all;
        Ok(report)
    }

    /// The groups of each table.
    #[must_use]
    pub fn tables(&self) -> &[Groups] {
        &self.tables
    }
}

impl Shape {
    /// The layout of the keys of `lookups` lookups; `None` where they do not fit 64 bits.
    fn new(rows: usize, bags: usize, lookups: usize) -> Option<Shape> {
        let (position_bits, bag_bits) = (bits(lookups), bits(bags));
        let needed = bits(rows) + position_bits;
        if needed > 64 || u32::try_from(lookups).is_err() || u32::try_from(bags).is_err() {
            return None;
        }
        let bag_bits = if needed + bag_bits > 64 { 0 } else { bag_bits };
        Some(Shape { rows, bags, lookups, position_bits, bag_bits })
    }
}

impl Groups {
    /// Groups without lookups.
    fn empty() -> Groups {
        Groups { shape: Shape::default(), keys: Vec::new(), starts: vec![0], bag_of: Vec::new() }
    }

    /// Positions of the bits of keys.
    fn layout(&self) -> radix::Layout {
        radix::Layout {
            rows: self.shape.rows,
            row_bits: bits(self.shape.rows),
            position_bits: self.shape.position_bits,
            bag_bits: self.shape.bag_bits,
        }
    }

    /// Stores bags by position, where they do not fit the keys.
    fn fill_bags(&mut self, source: &Source<'_>) {
        self.bag_of.clear();
        if self.shape.bag_bits < bits(self.shape.bags) {
            let bags = (0..self.shape.bags).flat_map(|bag| source.positions(bag).map(move |_| bag as u32));
            self.bag_of.extend(bags);
        }
    }

    /// Sorts the table's lookups on this thread.
    fn fill(&mut self, source: &Source<'_>, spare: &mut Scratch) {
        self.fill_bags(source);
        let layout = self.layout();
        radix::sort(source, &layout, &mut self.keys, spare);
        radix::starts(&self.keys, layout.shift(), &mut self.starts);
    }

    /// Number of rows, E.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Number of bags, B.
    #[must_use]
    pub fn bags(&self) -> usize {
        self.shape.bags
    }

    /// Number of lookups, including those that are out of range.
    #[must_use]
    pub fn lookups(&self) -> usize {
        self.shape.lookups
    }

    /// Number of lookups that are in range: places `0..len` of the grouped order.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no lookup is in range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Number of distinct rows, U.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.starts.len() - 1
    }

    /// The places, in the grouped order, of the lookups of the `group`-th distinct row; never empty.
    ///
    /// # Panics
    ///
    /// There are not that many distinct rows.
    #[must_use]
    #[inline(always)]
    pub fn group(&self, group: usize) -> Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }

    /// The first distinct row whose lookups start at this place of the grouped order or later.
    #[must_use]
    pub fn group_from(&self, place: usize) -> usize {
        self.starts[..self.distinct()].partition_point(|&start| (start as usize) < place)
    }

    /// The row of the lookup at this place of the grouped order.
    ///
    /// # Panics
    ///
    /// The place does not exist.
    #[must_use]
    #[inline(always)]
    pub fn row(&self, place: usize) -> usize {
        // Two shifts, since together they may be as many as all bits.
        (self.keys[place] >> self.shape.position_bits >> self.shape.bag_bits) as usize
    }

    /// The lookup at this place of the grouped order, counted from the table's first.
    ///
    /// # Panics
    ///
    /// The place does not exist.
    #[must_use]
    #[inline(always)]
    pub fn position(&self, place: usize) -> usize {
        (self.keys[place] >> self.shape.bag_bits) as usize & ((1usize << self.shape.position_bits) - 1)
    }

    /// The bag of the lookup at this place of the grouped order.
    ///
    /// # Panics
    ///
    /// The place does not exist.
    #[must_use]
    #[inline(always)]
    pub fn bag(&self, place: usize) -> usize {
        if self.bag_of.is_empty() {
            self.keys[place] as usize & ((1usize << self.shape.bag_bits) - 1)
        } else {
            self.bag_of[self.position(place)] as usize
        }
    }

    /// The distinct rows, ascending.
    pub fn distinct_rows(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.starts[..self.distinct()].iter().map(|&start| self.row(start as usize))
    }
}

#[cfg(test)]
mod tests;
