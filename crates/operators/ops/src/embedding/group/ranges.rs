//! Sorts the lookups of large tables on all threads: rows are divided into ranges of about the same number of lookups,
//! lookups are moved to their range, and ranges are sorted.
//!
//! The boundaries of ranges are estimated from a sample, so that frequent rows do not make one range long. Keys are
//! distinct, so their order is unique, whatever the ranges.

use super::radix::{Layout, Source};
use super::{Groups, Scratch};
use crate::Cpu;
use crate::shared::Shared;

/// Number of lookups of a table from which several threads sort it, and the least number of threads: two take as long
/// as one, which sorts a digit at a time.
pub(super) const LARGE: usize = 4096;
pub(super) const LEAST_THREADS: usize = 4;

/// Approximate number of lookups of a range, and largest number of ranges of a table.
const RANGE: usize = 512;
const MOST_RANGES: usize = 256;

/// Number of lookups in the sample for each range.
const SAMPLES: usize = 4;

/// Number of keys that are sorted a digit at a time; larger sets may have few rows, for which a merge sort is better.
const SHORT: usize = 1024;

/// Bits of such a digit: a small sort should not visit more counts than keys.
const DIGIT: u32 = 6;

/// Least and most lookups that one part of the work moves.
const CHUNKS: [usize; 2] = [1 << 10, 32 << 10];

/// A table to be sorted.
pub(super) struct Job<'a> {
    source: Source<'a>,
    layout: Layout,
    /// Bags of each chunk.
    chunks: Vec<std::ops::Range<usize>>,
    ranges: usize,
    splitters: Shared<'a, u64>,
    range_of: Shared<'a, u8>,
    counts: Shared<'a, u32>,
    bounds: Shared<'a, u32>,
    distinct: Shared<'a, u32>,
    keys: Shared<'a, u64>,
    starts: Shared<'a, u32>,
}

impl<'a> Job<'a> {
    /// A job for these groups, whose shape is that of the source; `chunk` lookups are moved at a time.
    pub(super) fn new(
        source: Source<'a>,
        groups: &'a mut Groups,
        spare: &'a mut Scratch,
        chunk: usize,
    ) -> Job<'a> {
        let layout = groups.layout();
        let lookups = source.len();
        groups.fill_bags(&source);
        groups.keys.resize(lookups, 0);
        groups.starts.resize(lookups + 1, 0);
        let ranges = (lookups / RANGE).next_power_of_two().clamp(2, MOST_RANGES);
        let count = lookups.div_ceil(chunk).max(1);
        let ends = (1..count).map(|at| source.first_bag(at * chunk)).chain([source.bags()]);
        let mut begin = 0;
        let chunks: Vec<_> = ends.map(|end| std::mem::replace(&mut begin, end)..end).collect();
        let kept = &mut spare.kept;
        kept.splitters.resize(ranges - 1, 0);
        kept.ranges.resize(lookups, 0);
        kept.counts.resize(count * ranges, 0);
        kept.bounds.resize(ranges + 1, 0);
        kept.distinct.resize(ranges + 1, 0);
        Job {
            source,
            layout,
            chunks,
            ranges,
            splitters: Shared::new(&mut kept.splitters),
            range_of: Shared::new(&mut kept.ranges),
            counts: Shared::new(&mut kept.counts),
            bounds: Shared::new(&mut kept.bounds),
            distinct: Shared::new(&mut kept.distinct),
            keys: Shared::new(&mut groups.keys),
            starts: Shared::new(&mut groups.starts),
        }
    }

    /// Chooses the boundaries of ranges.
    fn sample(&self) {
        let (lookups, count) = (self.source.len(), self.ranges * SAMPLES);
        let at = |at: usize| self.source.row(at * lookups / count);
        let mut rows: Vec<u64> = (0..count).map(at).filter(|&row| row < self.layout.rows as u64).collect();
        rows.sort_unstable();
        // SAFETY: only this table's part of this stage writes them, and the next stage reads them.
        let splitters = unsafe { self.splitters.range(0, self.ranges - 1) };
        for (at, splitter) in splitters.iter_mut().enumerate() {
            *splitter = rows.get((at + 1) * rows.len() / self.ranges).copied().unwrap_or(u64::MAX);
        }
    }

    /// Finds the range of each lookup of a chunk, and counts them by range.
    fn count(&self, chunk: usize) {
        // SAFETY: the stage before wrote them.
        let splitters = unsafe { self.splitters.all() };
        // SAFETY: each chunk has counts of its own, and is done once.
        let counts = unsafe { self.counts.range(chunk * self.ranges, self.ranges) };
        counts.fill(0);
        let places = self.source.places(&self.chunks[chunk]);
        // SAFETY: chunks have different bags, and so different positions.
        let range_of = unsafe { self.range_of.range(places.start, places.len()) };
        self.source.each(self.layout.rows, self.chunks[chunk].clone(), |position, _, row| {
            let mut range = 0;
            let mut step = self.ranges / 2;
            while step > 0 {
                // Without a branch: the range of a row is unpredictable.
                let behind = splitters[range + step - 1] <= row as u64;
                range += std::hint::select_unpredictable(behind, step, 0);
                step /= 2;
            }
            range_of[position - places.start] = range as u8;
            counts[range] += 1;
        });
    }

    /// Computes the destinations of the lookups of each chunk in each range.
    fn place(&self) {
        // SAFETY: only this table's part of this stage has both, and the other stages are over or to come.
        let (counts, bounds) = unsafe {
            (self.counts.range(0, self.chunks.len() * self.ranges), self.bounds.range(0, self.ranges + 1))
        };
        let mut next = 0;
        for (range, bound) in bounds.iter_mut().enumerate() {
            *bound = next;
            if range < self.ranges {
                for count in counts[range..].iter_mut().step_by(self.ranges) {
                    next += std::mem::replace(count, next);
                }
            }
        }
    }

    /// Moves the lookups of a chunk to their ranges.
    fn scatter(&self, chunk: usize) {
        // SAFETY: each chunk has counts of its own, and is done once.
        let counts = unsafe { self.counts.range(chunk * self.ranges, self.ranges) };
        let places = self.source.places(&self.chunks[chunk]);
        // SAFETY: chunks have different bags, and so different positions.
        let range_of = unsafe { self.range_of.range(places.start, places.len()) };
        self.source.each(self.layout.rows, self.chunks[chunk].clone(), |position, bag, row| {
            let place = &mut counts[range_of[position - places.start] as usize];
            // SAFETY: the counts are of the same lookups, chunk by chunk and range by range, and `place` turned them
            // into the beginnings of each: so every lookup has its own place.
            unsafe { self.keys.range(*place as usize, 1)[0] = self.layout.key(position, bag, row) };
            *place += 1;
        });
    }

    /// Returns the keys of a range.
    ///
    /// # Safety
    ///
    /// No other part has them at the same time, and `place` is done.
    unsafe fn range(&self, range: usize) -> &'a mut [u64] {
        // SAFETY: the bounds are not written after `place`.
        let bounds = unsafe { self.bounds.all() };
        let (from, to) = (bounds[range] as usize, bounds[range + 1] as usize);
        // SAFETY: ranges are disjoint, and this one is the caller's.
        unsafe { self.keys.range(from, to - from) }
    }

    fn row_of(&self, key: u64) -> u64 {
        key.checked_shr(self.layout.shift()).unwrap_or(0)
    }

    /// Sorts a range and counts its rows.
    fn sort(&self, range: usize) {
        // SAFETY: each range is sorted once in this stage.
        let keys = unsafe { self.range(range) };
        // They are in order of position already, so they are sorted by row only.
        if keys.len() <= SHORT {
            sort_short(keys, self.layout.shift());
        } else {
            keys.sort_by_key(|&key| self.row_of(key));
        }
        let changes = keys.windows(2).filter(|pair| self.row_of(pair[0]) != self.row_of(pair[1])).count();
        // SAFETY: each range has a count of its own.
        unsafe { self.distinct.range(range, 1)[0] = changes as u32 + u32::from(!keys.is_empty()) };
    }

    /// Computes the destinations of the starts of each range.
    fn place_starts(&self) {
        // SAFETY: only this table's part of this stage has them.
        let distinct = unsafe { self.distinct.range(0, self.ranges + 1) };
        let mut next = 0;
        for count in distinct {
            next += std::mem::replace(count, next);
        }
    }

    /// Writes the first key of each row of a range.
    fn write_starts(&self, range: usize) {
        // SAFETY: each range is read once in this stage.
        let keys = unsafe { self.range(range) };
        // SAFETY: these are not written in this stage.
        let (bounds, distinct) = unsafe { (self.bounds.all(), self.distinct.all()) };
        let (from, to) = (distinct[range] as usize, distinct[range + 1] as usize);
        // SAFETY: ranges have different rows, and so different starts.
        let starts = unsafe { self.starts.range(from, to - from) };
        let mut next = starts.iter_mut();
        let mut before = None;
        for (at, &key) in keys.iter().enumerate() {
            let row = self.row_of(key);
            if before != Some(row)
                && let Some(start) = next.next()
            {
                *start = bounds[range] + at as u32;
                before = Some(row);
            }
        }
    }

    /// Returns the number of keys and of distinct rows, once all stages are done.
    fn found(&self) -> (usize, usize) {
        // SAFETY: all stages are over.
        let (bounds, distinct) = unsafe { (self.bounds.all(), self.distinct.all()) };
        (bounds[self.ranges] as usize, distinct[self.ranges] as usize)
    }
}

/// Sorts some keys by the bits from `shift` on, stably.
fn sort_short(keys: &mut [u64], shift: u32) {
    let row = |key: u64| key.checked_shr(shift).unwrap_or(0);
    let (least, most) =
        keys.iter().fold((u64::MAX, 0), |(least, most), &key| (least.min(row(key)), most.max(row(key))));
    if keys.len() < 2 || least == most {
        return;
    }
    let mut other = [0; SHORT];
    let mut other = &mut other[..keys.len()];
    let mut from = &mut *keys;
    let bits = u64::BITS - (most - least).leading_zeros();
    let passes = bits.div_ceil(DIGIT);
    for pass in 0..passes {
        let digit = |key: u64| ((row(key) - least) >> (pass * DIGIT)) as usize & ((1 << DIGIT) - 1);
        let mut places = [0_u32; 1 << DIGIT];
        from.iter().for_each(|&key| places[digit(key)] += 1);
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for &key in &*from {
            let place = &mut places[digit(key)];
            other[*place as usize] = key;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut other);
    }
    if passes % 2 == 1 {
        // The last pass left them in the other buffer, to which `other` no longer refers.
        other.copy_from_slice(from);
    }
}

/// Number of lookups of all tables that one part of the work moves.
pub(super) fn chunk(lookups: usize, threads: usize) -> usize {
    (lookups / (4 * threads)).clamp(CHUNKS[0], CHUNKS[1])
}

/// Sorts the lookups of all jobs, and does `others` pieces of other work concurrently. Returns the number of keys and
/// rows of each job.
pub(super) fn sort(
    cpu: &Cpu,
    jobs: &[Job<'_>],
    others: usize,
    other: impl Fn(usize) + Sync,
) -> Vec<(usize, usize)> {
    let each = |count: fn(&Job<'_>) -> usize| -> Vec<(usize, usize)> {
        jobs.iter().enumerate().flat_map(|(job, of)| (0..count(of)).map(move |part| (job, part))).collect()
    };
    let (chunks, ranges) = (each(|job| job.chunks.len()), each(|job| job.ranges));
    let tables = jobs.len();
    let stages = [tables, others + chunks.len(), tables, chunks.len(), ranges.len(), tables, ranges.len()];
    let of = |parts: &[(usize, usize)], part: usize| (&jobs[parts[part].0], parts[part].1);
    cpu.stages(cpu.threads(), &stages, |stage, part| match stage {
        0 => jobs[part].sample(),
        1 if part < others => other(part),
        1 => {
            let (job, chunk) = of(&chunks, part - others);
            job.count(chunk);
        }
        2 => jobs[part].place(),
        3 => {
            let (job, chunk) = of(&chunks, part);
            job.scatter(chunk);
        }
        4 => {
            let (job, range) = of(&ranges, part);
            job.sort(range);
        }
        5 => jobs[part].place_starts(),
        _ => {
            let (job, range) = of(&ranges, part);
            job.write_starts(range);
        }
    });
    jobs.iter().map(Job::found).collect()
}
