//! Partition of a product for threads: their number, and the part of C of each.
//!
//! The cost of each partition is estimated in cycles, by its largest part: arithmetic, reads of B, packing of A, and
//! startup. Too many threads cost more than they gain, and a product that one thread finishes in some microseconds runs
//! on one thread.

use super::plan::{Cut, Plan};

/// Cycles for spinning threads to begin and end work: for the first thread, and for each additional one.
const START: usize = 4000;
const START_EACH: usize = 250;

/// Cycles to begin and to store a register tile.
const TILE: usize = 40;

/// Bytes of operands per cycle from the caches behind the first level, during arithmetic.
const BYTES: usize = 32;

/// Cycles to fetch and store a line of C. Where several threads write the same rows, they prefetch lines that another
/// writes: each further part across adds a quarter of the cycles.
const C_LINE: usize = 16;

/// Cycles to fetch a line of sums that another thread has just written.
const SUM_LINE: usize = 32;

/// Cycles to begin a run of B in place.
const RUN: usize = 64;

/// Number of rows of a part below which C is divided across columns too: tiles need that many sums to keep the
/// arithmetic units busy.
const LEAST_ROWS: usize = 8;

/// Number of register tiles above each other in a part of a large product. There are enough parts that idle threads can
/// take those of others, but each part uses a panel of B several times.
const PART_TILES: usize = 6;

/// Number of panels of B up to which a part of A is read in place: packing it takes a good part of the time of one use.
const USES_IN_PLACE: usize = 8;

impl Plan {
    /// Partition of `cols` columns of C for at most this many threads, which may also divide the terms of sums if
    /// `along`.
    pub(crate) fn cut(&self, cols: usize, threads: usize, along: bool) -> Cut {
        let panels = cols.div_ceil(self.n_r).max(1);
        if let Some((down, across)) = self.grid {
            return self.cut_to(panels, threads, (down, across, 1)).1;
        }
        let chains = if along && self.chain < self.k_c { self.k.div_ceil(self.chain) } else { 1 };
        let mut best = self.cut_to(panels, 1, (1, 1, 1));
        let mut count = threads;
        while count > 1 {
            let most_down = (self.m / LEAST_ROWS).clamp(1, count);
            let mut across = count.div_ceil(most_down).min(panels);
            let mut take = |down, across, along| {
                let next = self.cut_to(panels, threads, (down, across, along));
                if next.0 < best.0 {
                    best = next;
                }
            };
            // The partition with the fewest parts across, and those with some more.
            while across <= count.min(panels) {
                take((count / across).min(most_down), across, 1);
                across *= 2;
            }
            if chains > 1 {
                take(1, (count / chains).clamp(1, panels), chains);
            }
            count /= 2;
        }
        let mut cut = best.1;
        if cut.across == 1 && cut.along == 1 && cut.threads > 1 {
            let times = self.m.div_ceil(cut.threads * PART_TILES * self.most_rows);
            cut = self.cut_to(panels, cut.threads, (cut.threads * times, 1, 1)).1;
        }
        cut
    }

    /// Cost of a partition in cycles, and the partition: numbers of parts of C above each other and across, and of its
    /// sums.
    fn cut_to(
        &self,
        panels: usize,
        threads: usize,
        (down, across, along): (usize, usize, usize),
    ) -> (usize, Cut) {
        let k = if along > 1 { self.chain } else { self.k.max(1) };
        let parts = down * across * along;
        let count = parts.min(threads).max(1);
        let m_r = if down == 1 { self.m_r } else { even(self.m.div_ceil(down), self.most_rows) };
        let tiles = self.m.div_ceil(m_r).div_ceil(down).max(1);
        let (rows, panels) = (tiles * m_r, panels.div_ceil(across));
        let machine = &self.machine;
        // A step of a tile: its multiply-adds, or the latency between dependent sums.
        let step = (m_r * self.n_r).div_ceil(machine.lanes * machine.fma_rate).max(machine.fma_latency);
        let work = tiles * panels * (step * k + TILE * k.div_ceil(self.k_c));
        let read = |elements: usize| elements * size_of::<f32>() / BYTES;
        let in_place = panels <= USES_IN_PLACE;
        let a = if self.pack_a && !in_place { rows * k } else { read(rows * k * panels) };
        // B comes from farther away than A, which stays with its thread.
        let b = 2 * read(panels * k * self.n_r);
        // Rows of B in place are short runs far apart, each of which takes a while to begin.
        let runs = if self.pack_b || self.chain == self.k_c { 0 } else { RUN * k };
        let lines = rows * panels * self.n_r * size_of::<f32>() / 64;
        let c = lines * C_LINE * (3 + across) / 4;
        let start = if count == 1 { 0 } else { START + START_EACH * count };
        let sums = self.m * self.n * size_of::<f32>() / 64;
        let add = if along == 1 { 0 } else { START + sums * along * SUM_LINE / count };
        let cycles = (work + a + b + runs + c) * parts.div_ceil(count) + start + add;
        (cycles, Cut { threads: count, down, across, along, m_r, in_place })
    }
}

/// The height of equal tiles of at most `most` rows.
fn even(rows: usize, most: usize) -> usize {
    rows.div_ceil(rows.div_ceil(most.max(1)).max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::{Cache, Machine};
    use super::*;

    /// A plan for a server's core.
    fn plan(m: usize, n: usize, k: usize) -> Plan {
        let cache = |bytes, ways, sharers| Cache { bytes, ways, sharers };
        let caches = [cache(48 << 10, 12, 1), cache(2 << 20, 16, 1), cache(96 << 20, 16, 16)];
        Plan::on(Machine::with_caches(crate::Isa::Avx512, caches), (14, 32), m, n, k)
    }

    #[test]
    fn small_products_are_one_threads_and_large_ones_all_threads() {
        for (size, most) in [(8, 1), (16, 1), (32, 1), (64, 8)] {
            assert!(plan(size, size, size).cut(size, 16, true).threads <= most, "{size}");
        }
        for size in [256, 512, 1024, 2048] {
            assert_eq!(plan(size, size, size).cut(size, 16, true).threads, 16, "{size}");
        }
    }

    #[test]
    fn parts_follow_the_shape() {
        let tall = plan(4096, 64, 512).cut(64, 16, true);
        assert!(tall.down >= 8, "{tall:?}");
        let wide = plan(14, 4096, 512).cut(4096, 16, true);
        assert_eq!((wide.down, wide.across), (1, 16));
        // Never more parts than there is to share.
        let little = plan(3, 40, 1 << 20).cut(40, 16, true);
        assert!(little.down <= 3 && little.across <= 2, "{little:?}");
    }

    #[test]
    fn threads_share_out_the_terms_of_few_rows() {
        let cut = |m, n, k, threads| plan(m, n, k).cut(n, threads, true);
        assert_eq!((cut(14, 1024, 1024, 16).across, cut(14, 1024, 1024, 16).along), (4, 4));
        assert_eq!((cut(1, 1024, 1024, 4).across, cut(1, 1024, 1024, 4).along), (1, 4));
        // Not with one thread, many rows, few terms, or so many terms that the sums would fill memory.
        for (m, n, k, threads) in
            [(14, 1024, 1024, 1), (64, 1024, 1024, 16), (14, 2048, 512, 16), (14, 4096, 1 << 16, 16)]
        {
            assert_eq!(cut(m, n, k, threads).along, 1, "{m} x {n} x {k}");
        }
        assert_eq!(plan(14, 1024, 1024).cut(1024, 16, false).along, 1);
    }

    #[test]
    fn tiles_are_even() {
        // 64 rows a part: five tiles of 13, not four of 14 and one of 8.
        let cut = plan(1024, 1024, 1024).with_parts(16, 1).cut(1024, 16, true);
        assert_eq!((cut.threads, cut.down, cut.m_r), (16, 16, 13));
        assert_eq!((even(64, 14), even(15, 14), even(3, 14), even(0, 14)), (13, 8, 3, 1));
    }

    #[test]
    fn rows_that_compete_for_lines_are_told() {
        use super::super::operands::keeps_apart;
        assert!(!keeps_apart(1024, 14, 12) && !keeps_apart(0, 14, 12) && !keeps_apart(512, 14, 12));
        assert!(keeps_apart(256, 13, 12) && keeps_apart(1000, 14, 8) && keeps_apart(128, 8, 8));
    }
}
