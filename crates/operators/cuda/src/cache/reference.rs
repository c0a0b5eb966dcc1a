//! The cache of one table as plain code: a reference for the kernels, and a simulator for traces.

use std::collections::BTreeSet;

use super::policy::{NO_ROW, Policy, Sets, WAYS, Way, victim};

/// Effects of a batch on a cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Number of distinct rows of the batch.
    pub wanted: u64,
    /// Number of these that were in the cache.
    pub hits: u64,
    /// Rows that were fetched, in the order of sets, with their slots.
    pub fetched: Vec<(u32, u32)>,
    /// Rows that were evicted, with their slots, in the same order.
    pub evicted: Vec<(u32, u32)>,
    /// Number of evicted rows that were changed and therefore written back.
    pub written: u64,
    /// Number of sets without enough places. Nothing changed in them, and the batch cannot run.
    pub overflows: u64,
    /// Largest number of places that one of these needed, compared with [`WAYS`].
    pub worst: u64,
}

/// A simulated cache: it keeps the numbers of its rows, not their values.
#[derive(Debug, Clone)]
pub struct Simulation {
    sets: Sets,
    policy: Policy,
    ways: Vec<[Way; WAYS]>,
    batch: u32,
}

impl Simulation {
    /// An empty cache.
    #[must_use]
    pub fn new(sets: Sets, policy: Policy) -> Simulation {
        let empty = Way { row: NO_ROW, stamp: 0, count: 0, dirty: false };
        Simulation { sets, policy, ways: vec![[empty; WAYS]; sets.sets as usize], batch: 0 }
    }

    /// The number of the last batch: the first is 1.
    #[must_use]
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Makes room for the rows of a batch, and ignores rows that do not exist. Rows that batch `protect` or a later one
    /// uses stay. `train` marks the rows as changed.
    pub fn fetch(&mut self, indices: &[i64], protect: u32, train: bool) -> Outcome {
        self.batch += 1;
        let (sets, batch) = (self.sets, self.batch);
        let protect = protect.min(batch);
        let mut outcome = Outcome::default();
        let there = |&index: &i64| u32::try_from(index).ok().filter(|&row| row < sets.rows);
        let keys: BTreeSet<u32> = indices.iter().filter_map(there).map(|row| sets.key(row)).collect();
        for (set, ways) in self.ways.iter_mut().enumerate() {
            let first = set as u64 * u64::from(sets.span);
            let end = first + u64::from(sets.span);
            let wanted: Vec<u32> =
                keys.range(first as u32..=(end - 1) as u32).map(|&key| sets.row(key)).collect();
            let holds = |row: &&u32| ways.iter().any(|way| way.row == **row);
            let missing: Vec<u32> = wanted.iter().filter(|row| !holds(row)).copied().collect();
            outcome.wanted += wanted.len() as u64;
            outcome.hits += (wanted.len() - missing.len()) as u64;
            let kept = ways
                .iter()
                .filter(|way| way.row != NO_ROW && (way.stamp >= protect || wanted.contains(&way.row)));
            let needed = kept.count() + missing.len();
            if needed > WAYS {
                outcome.overflows += 1;
                outcome.worst = outcome.worst.max(needed as u64);
                continue;
            }
            for way in ways.iter_mut().filter(|way| wanted.contains(&way.row)) {
                *way = Way { stamp: batch, count: way.count + 1, dirty: way.dirty || train, ..*way };
            }
            for row in missing {
                let Some(at) = victim(self.policy, ways, protect) else { continue };
                let slot = (set * WAYS + at) as u32;
                if ways[at].row != NO_ROW {
                    outcome.evicted.push((ways[at].row, slot));
                    outcome.written += u64::from(ways[at].dirty);
                }
                outcome.fetched.push((row, slot));
                ways[at] = Way { row, stamp: batch, count: 1, dirty: train };
            }
        }
        outcome
    }

    /// Marks all rows as unchanged, as after writing them back, except those that batch `protect` or a later one uses.
    pub fn clean(&mut self, protect: u32) {
        for way in self.ways.iter_mut().flatten().filter(|way| way.stamp < protect) {
            way.dirty = false;
        }
    }

    /// The slot of a row, if it is cached.
    #[must_use]
    pub fn slot(&self, index: i64) -> Option<u32> {
        let row = u32::try_from(index).ok().filter(|&row| row < self.sets.rows)?;
        let set = (self.sets.key(row) / self.sets.span) as usize;
        let way = self.ways[set].iter().position(|way| way.row == row)?;
        Some((set * WAYS + way) as u32)
    }

    /// The row of each slot.
    #[must_use]
    pub fn rows(&self) -> Vec<Option<u32>> {
        self.ways.iter().flatten().map(|way| (way.row != NO_ROW).then_some(way.row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        /// A random row; low rows are more frequent.
        fn row(&mut self, rows: u64) -> i64 {
            let most = 1 + self.below(rows);
            self.below(most) as i64
        }
    }

    /// One set is a fully associative cache: compares it with a list in the order of last use.
    #[test]
    fn one_set_is_a_list_of_the_latest_rows() {
        let mut cache = Simulation::new(Sets::new(200, WAYS), Policy::Lru);
        let mut list: Vec<i64> = Vec::new();
        let mut random = Random(1);
        for number in 1..2000 {
            // One row a batch: the order of use within a batch is undefined.
            let row = random.row(200);
            let hit = list.contains(&row);
            list.retain(|&known| known != row);
            list.push(row);
            let evicted = (list.len() > WAYS).then(|| list.remove(0));
            let outcome = cache.fetch(&[row, -1, 200, row], number, false);
            assert_eq!((outcome.wanted, outcome.hits, outcome.written), (1, u64::from(hit), 0));
            let rows: Vec<i64> = outcome.evicted.iter().map(|&(row, _)| row.into()).collect();
            assert_eq!(rows, evicted.into_iter().collect::<Vec<_>>());
        }
    }

    /// Values that move with the rows equal those of a table without a cache, whatever is evicted.
    #[test]
    fn training_through_a_cache_is_exact() {
        for policy in [Policy::Lru, Policy::Lfu] {
            let rows = 1000;
            let (mut plain, mut host) = (vec![0_u64; rows], vec![0_u64; rows]);
            let mut cache = Simulation::new(Sets::new(rows, 200), policy);
            let mut slots = vec![u64::MAX; cache.rows().len()];
            let mut random = Random(2);
            let (mut evictions, mut in_use) = (0, Vec::new());
            for number in 1..300_u32 {
                let batch: Vec<i64> = (0..20).map(|_| random.row(rows as u64)).collect();
                let train = number % 3 != 0;
                // The batch before is still in use.
                let outcome = cache.fetch(&batch, number - 1, train);
                assert_eq!(outcome.overflows, 0);
                evictions += outcome.evicted.len();
                for &(row, slot) in &outcome.evicted {
                    assert!(!in_use.contains(&i64::from(row)));
                    host[row as usize] = slots[slot as usize];
                }
                for &(row, slot) in &outcome.fetched {
                    slots[slot as usize] = host[row as usize];
                }
                for &row in &batch {
                    let slot = cache.slot(row).unwrap() as usize;
                    assert_eq!(slots[slot], plain[row as usize]);
                    if train {
                        plain[row as usize] += u64::from(number);
                        slots[slot] += u64::from(number);
                    }
                }
                in_use = batch;
            }
            assert!(evictions > 500);
        }
    }

    #[test]
    fn rows_that_many_batches_want_stay_with_lfu() {
        let mut cache = Simulation::new(Sets::new(1000, WAYS), Policy::Lfu);
        for number in 1..200 {
            let fresh: Vec<i64> = (0..20).map(|at| 10 + (i64::from(number) * 20 + at) % 990).collect();
            let hot: Vec<i64> = (0..10).chain(fresh).collect();
            let outcome = cache.fetch(&hot, number, false);
            assert!(number == 1 || outcome.hits >= 10);
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_changes_nothing() {
        let mut cache = Simulation::new(Sets::new(100, WAYS), Policy::Lru);
        cache.fetch(&(0..20).collect::<Vec<_>>(), 1, true);
        let before = cache.rows();
        let outcome = cache.fetch(&(10..40).collect::<Vec<_>>(), 1, true);
        assert_eq!((outcome.overflows, outcome.worst, outcome.hits), (1, 40, 10));
        assert_eq!(cache.rows(), before);
        // Once the first batch is finished, there is room.
        let outcome = cache.fetch(&(10..40).collect::<Vec<_>>(), 3, true);
        assert_eq!((outcome.overflows, outcome.evicted.len(), outcome.written), (0, 8, 8));
        cache.clean(4);
        let outcome = cache.fetch(&(40..70).collect::<Vec<_>>(), 4, true);
        assert_eq!((outcome.evicted.len(), outcome.written), (30, 0));
    }
}
