//! Tiling of a product, derived from the machine and the shape, and the predicted reads of each level.

use std::fmt;

use super::kernel::{SHORT, best_tile, most_rows};
use super::{GemmError, Machine};
use crate::Isa;

/// Number of columns of C up to which copying A into panels costs more than reading it in place.
const A_IN_PLACE: usize = 64;

/// Number of register tiles above each other in a thread's part from which all threads pack B together, even if it fits
/// the second level. Panels that other threads packed come from their caches.
const USES_TO_PACK: usize = 10;

/// Number of register tiles above each other in a block of A: enough that a panel of B from the last level is used
/// often, few enough that the rows of C are still in the second level when the next panel needs them.
const MOST_TILES_DOWN: usize = 8;

/// Largest number of terms that a tile adds in one go: packing then has enough pieces for many threads.
const MOST_TERMS: usize = 1024;

/// Number of rows up to which threads may divide the terms of sums: a copy of C for each chain of terms is then small.
const FEW_ROWS: usize = 28;

/// Largest number of terms of such a chain, and the allowed numbers of chains: fewer do not pay, and more would fill
/// memory.
const CHAIN: usize = 256;
const CHAINS: std::ops::RangeInclusive<usize> = 4..=16;

/// The tiles of a product `C[m, n] = A[m, k] B[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Plan {
    /// Number of rows of C.
    pub(crate) m: usize,
    /// Number of columns of C.
    pub(crate) n: usize,
    /// Number of terms of each sum.
    pub(crate) k: usize,
    /// Number of rows of a register tile (v1).
    pub(crate) m_r: usize,
    /// Number of columns of a register tile (v2).
    pub(crate) n_r: usize,
    /// Number of terms that a tile adds before its sums go back to memory, and that are packed together.
    pub(crate) k_c: usize,
    /// Number of terms of a chain: they are added one after the other, then the chains in order. It divides k_c or is
    /// k_c.
    pub(crate) chain: usize,
    /// Number of rows of A packed at a time (b1).
    pub(crate) m_c: usize,
    /// Number of columns of B packed at a time (b2).
    pub(crate) n_c: usize,
    /// Whether A is copied into panels; otherwise tiles read it in place.
    pub(crate) pack_a: bool,
    /// Whether B is copied into panels; otherwise tiles read it in place where its rows are contiguous.
    pub(crate) pack_b: bool,
    /// The machine it was made for.
    pub(crate) machine: Machine,
    /// Partition of C for threads.
    pub(crate) cut: Cut,
    /// Number of rows of the largest register tile.
    #[serde(skip)]
    pub(crate) most_rows: usize,
    /// Numbers of parts of C, if they were chosen.
    #[serde(skip)]
    pub(crate) grid: Option<(usize, usize)>,
}

/// Partition of C, or of some of its columns, for threads. The result does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Cut {
    /// Number of threads to use.
    pub threads: usize,
    /// Number of parts above each other. With more parts than threads, idle threads take those of others.
    pub down: usize,
    /// Number of parts across.
    pub across: usize,
    /// Number of parts of the sums, one for each chain of terms, or 1. They are added in order.
    pub along: usize,
    /// Number of rows of a register tile: as even as parts allow.
    pub m_r: usize,
    /// Whether parts use A so rarely that it is read in place, where its rows do not compete for the same cache lines.
    pub in_place: bool,
}

impl Plan {
    /// A plan for these instructions on this machine.
    #[must_use]
    pub fn new(isa: Isa, m: usize, n: usize, k: usize) -> Plan {
        Plan::on(Machine::detect(isa), best_tile(isa, m, n, k), m, n, k)
    }

    /// A plan for a matrix B that is packed once, for any number of rows.
    pub(crate) fn prepacked(isa: Isa, m: usize, n: usize, k: usize) -> Plan {
        Plan::on(Machine::detect(isa), best_tile(isa, 1, n, k), m, n, k)
    }

    /// A plan for a machine and a register tile of at most `(m_r, n_r)`, for example from [`register_tile`].
    #[must_use]
    pub fn on(machine: Machine, (m_r, n_r): (usize, usize), m: usize, n: usize, k: usize) -> Plan {
        let [l1, l2, l3] = machine.caches;
        let float = size_of::<f32>();
        let most_rows = m_r;
        // As many tiles as that many rows need, all of about the same height: with a low last one, dependent sums would
        // stall.
        let m_r = balanced(m, m_r, 1);
        // The second-level cache feeds the registers fast enough, (m_r + n_r) floats for m_r * n_r multiply-adds, so
        // panels need not fit the first level, and a long k_c saves trips of C: a panel of B takes a quarter of the
        // second level, a block of A half, and C passes through the rest. It does not depend on the tile in use, since
        // sums are split there.
        let (_, usual) = register_tile(&machine);
        let terms = (l2.bytes / 4 / (usual * float)).max(l1.bytes / (usual * float)).max(32);
        let k_c = balanced(k, terms.min(MOST_TERMS), 8);
        let m_c = (l2.bytes / 2 / (k_c * float)).clamp(m_r, MOST_TILES_DOWN * m_r) / m_r * m_r;
        let n_c = (l3.bytes / 2 / (k.max(1) * float)).max(n_r) / n_r * n_r;
        let n_c = balanced(n, n_c, n_r);
        let pack_a = n > A_IN_PLACE && k > SHORT;
        // A copy of B pays where it is read more than twice, unless all of it fits the second level.
        let pack_b = m > 2 * m_r && n.saturating_mul(k) > l2.bytes / 4 / float;
        let large = n.saturating_mul(k) > l2.bytes / 2 / float;
        let shared = m <= FEW_ROWS && CHAINS.contains(&k.div_ceil(CHAIN)) && large;
        // The terms that are packed together are a power of two of chains; k_c is a multiple of the chain.
        let chain = if shared { k_c / k_c.div_ceil(CHAIN).next_power_of_two() } else { k_c };
        let cut = Cut { threads: 1, down: 1, across: 1, along: 1, m_r, in_place: false };
        let grid = None;
        Plan { m, n, k, m_r, n_r, k_c, chain, m_c, n_c, pack_a, pack_b, machine, cut, most_rows, grid }
    }

    /// The same plan, partitioned for at most this many threads. Products do this themselves.
    #[must_use]
    pub fn for_threads(mut self, threads: usize) -> Plan {
        self.cut = self.cut(self.n_c.min(self.n), threads.max(1), true);
        self
    }

    /// The same plan with C divided into `down` parts above each other and `across` parts next to each other.
    #[must_use]
    pub fn with_parts(mut self, down: usize, across: usize) -> Plan {
        self.grid = Some((down.clamp(1, self.m.max(1)), across.clamp(1, self.n.max(1).div_ceil(self.n_r))));
        self
    }

    /// The same plan with other block sizes, rounded to whole register tiles.
    #[must_use]
    pub fn with_blocks(mut self, k_c: usize, m_c: usize, n_c: usize) -> Plan {
        self.k_c = k_c.max(1);
        self.chain = self.k_c;
        self.m_c = m_c.max(1).next_multiple_of(self.m_r);
        self.n_c = n_c.max(1).next_multiple_of(self.n_r);
        self
    }

    /// The same plan with B copied into panels (`true`), or read in place where its rows are contiguous (`false`).
    #[must_use]
    pub fn with_packed_b(mut self, pack_b: bool) -> Plan {
        self.pack_b = pack_b;
        self
    }

    /// The same plan with A read in place (`false`) or copied into panels (`true`).
    #[must_use]
    pub fn with_packed_a(mut self, pack_a: bool) -> Plan {
        self.pack_a = pack_a;
        self
    }

    /// Whether B is copied for `threads` threads: since each of them reads it, it must be read more often to pay, or
    /// not fit their second levels.
    pub(crate) fn packs_b(&self, threads: usize) -> bool {
        let fits = self.n.saturating_mul(self.k) <= self.machine.caches[1].bytes / 2 / size_of::<f32>();
        self.pack_b && (threads == 1 || !fits || self.m / threads > USES_TO_PACK * self.most_rows)
    }

    /// Fails unless its register tile is that of these instructions.
    pub(crate) fn check(&self, isa: Isa) -> Result<(), GemmError> {
        let (m_r, n_r) = (self.m_r, self.n_r);
        let (rows, cols) = best_tile(isa, self.m, self.n, self.k);
        let held = m_r <= most_rows(isa, n_r) && n_r.is_multiple_of(cols.min(16));
        if held { Ok(()) } else { Err(GemmError::Tile { m_r, n_r, isa, rows, cols }) }
    }
}

/// The register tile `(m_r, n_r)` with the fewest reads per multiply-add among those that fit the registers, keep the
/// arithmetic units busy (m_r * vectors >= latency * rate), and whose loads keep pace with them.
#[must_use]
pub fn register_tile(machine: &Machine) -> (usize, usize) {
    let mut best = (1, machine.lanes);
    let reads = |(m_r, n_r): (usize, usize)| 1.0 / m_r as f64 + 1.0 / n_r as f64;
    for vectors in 1..=4 {
        // Accumulators, a row of B, and one element of A in all lanes.
        let m_r = machine.registers.saturating_sub(vectors + 1) / vectors;
        let sums = m_r * vectors;
        let busy = sums >= machine.fma_latency * machine.fma_rate;
        let fed = (m_r + vectors) * machine.fma_rate <= sums * machine.load_rate;
        let tile = (m_r, vectors * machine.lanes);
        if busy && fed && reads(tile) < reads(best) {
            best = tile;
        }
    }
    best
}

/// Block size that divides `total` into equal blocks of at most `most`, rounded up to a multiple of `step`.
fn balanced(total: usize, most: usize, step: usize) -> usize {
    let blocks = total.div_ceil(most.max(1)).max(1);
    total.div_ceil(blocks).max(1).next_multiple_of(step)
}

/// Predicted reads of a product from one level.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct LevelCost {
    /// Name of the level.
    pub level: &'static str,
    /// The formula of its reads, in elements.
    pub formula: &'static str,
    /// Bytes read from it into the level above.
    pub read_bytes: f64,
    /// Number of multiply-adds for each byte.
    pub multiply_adds_per_byte: f64,
}

impl Plan {
    /// Predicted reads from each level into the one above, from the registers' side down to memory.
    #[must_use]
    pub fn levels(&self) -> [LevelCost; 4] {
        let [m, n, k] = [self.m, self.n, self.k].map(|size| size as f64);
        let [m_r, n_r, k_c, m_c, n_c] =
            [self.m_r, self.n_r, self.k_c, self.m_c.min(self.m.max(1)), self.n_c].map(|size| size as f64);
        let level = |level, formula, elements: f64| LevelCost {
            level,
            formula,
            read_bytes: elements * size_of::<f32>() as f64,
            multiply_adds_per_byte: m * n * k / (elements * size_of::<f32>() as f64),
        };
        let blocks = |size: f64, block: f64| (size / block).ceil();
        let c_again = m * n * blocks(k, k_c);
        [
            level(
                "registers <- L1",
                "mnk/n_r + mnk/m_r + mn k/k_c",
                m * n * k * (1.0 / n_r + 1.0 / m_r) + c_again,
            ),
            level(
                "L1 <- L2",
                "mnk/n_r + mnk/m_c + mn k/k_c",
                m * k * blocks(n, n_r) + n * k * blocks(m, m_c) + c_again,
            ),
            level(
                "L2 <- L3",
                "mk n/n_c + mnk/m_c + mn",
                m * k * blocks(n, n_c) + n * k * blocks(m, m_c) + m * n,
            ),
            level("L3 <- memory", "mk n/n_c + nk + mn", m * k * blocks(n, n_c) + n * k + m * n),
        ]
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { m, n, k, m_r, n_r, k_c, m_c, n_c, machine, .. } = self;
        let [l1, l2, l3] = machine.caches.map(|cache| cache.bytes >> 10);
        let kib = |elements: usize| (elements * size_of::<f32>()).div_ceil(1 << 10);
        writeln!(f, "C[{m}, {n}] = A[{m}, {k}] B[{k}, {n}], f32")?;
        writeln!(
            f,
            "machine   {} registers of {} floats; L1 {l1} KiB, L2 {l2} KiB, L3 {l3} KiB",
            machine.registers, machine.lanes
        )?;
        writeln!(
            f,
            "registers m_r x n_r = {m_r} x {n_r}: {} accumulators, at least {} needed",
            m_r * n_r / machine.lanes,
            machine.fma_latency * machine.fma_rate
        )?;
        let way = |packed: bool| if packed { "packed" } else { "read in place" };
        let (a, b) = (way(self.pack_a), way(self.pack_b));
        writeln!(f, "L2        k_c = {k_c}: a panel of B is {} KiB", kib(k_c * n_r))?;
        writeln!(f, "          m_c = {m_c}: a block of A is {} KiB, {a}", kib(m_c * k_c))?;
        writeln!(f, "L3        n_c = {n_c}: a block of B is {} KiB, {b}", kib(n_c * k))?;
        let Cut { threads, down, across, along, m_r, .. } = self.cut;
        write!(f, "threads   {threads}: {down} x {across} parts of C, ")?;
        if along > 1 {
            write!(f, "each from {along} parts of its sums, ")?;
        }
        writeln!(f, "in tiles of {m_r} x {n_r}")?;
        writeln!(f, "{:<16} {:>14} {:>16}  elements", "level", "reads, MB", "multiply-adds/B")?;
        for level in self.levels() {
            let (mb, intensity) = (level.read_bytes / 1e6, level.multiply_adds_per_byte);
            writeln!(f, "{:<16} {mb:>14.2} {intensity:>16.2}  {}", level.level, level.formula)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::{tile_cols, tile_rows};
    use super::*;

    #[test]
    fn kernels_have_the_tiles_that_the_rule_gives() {
        for isa in Isa::ALL {
            assert_eq!(register_tile(&Machine::detect(isa)), (tile_rows(isa), tile_cols(isa)), "{isa}");
        }
    }

    #[test]
    fn blocks_fit_the_caches_and_the_problem() {
        for isa in Isa::ALL {
            for (m, n, k) in [(0, 0, 0), (1, 1, 1), (2048, 13, 512), (2048, 512, 13), (9, 9, 1 << 20)] {
                let plan = Plan::new(isa, m, n, k);
                let l2 = plan.machine.caches[1].bytes;
                assert!(plan.k_c >= 1 && plan.k_c * plan.n_r * 4 <= l2 / 2, "{plan}");
                let whole = plan.m_c.is_multiple_of(plan.m_r) && plan.n_c.is_multiple_of(plan.n_r);
                assert!(plan.m_c >= plan.m_r && whole);
                assert!(plan.levels().iter().all(|level| level.read_bytes >= 0.0));
            }
        }
    }

    #[test]
    fn a_plan_prints_what_each_level_reads() {
        let text = Plan::new(Isa::Avx512, 2048, 512, 512).to_string();
        assert!(text.contains("14 x 32") && text.contains("L3 <- memory"), "{text}");
    }
}
