//! The order of an epoch's rows.

use serde::{Deserialize, Serialize};
use steptime_launch::mix;

use super::permutation::Permutation;

/// Shuffling of rows: blocks of neighbouring rows in random order, then the rows within each window of blocks.
///
/// Rows are read in runs of a block's length, so the disk is read in large pieces. A window of rows is random within
/// itself and consists of blocks from everywhere. Only the last rows of the split, fewer than a block, are always in the
/// last window. The order depends on the seed, the epoch, `block` and `blocks`, not on the batch size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shuffle {
    /// Seed of all epochs.
    pub seed: u64,
    /// Rows of a block, at least 1.
    pub block: u32,
    /// Blocks of a window, at least 1.
    pub blocks: u32,
}

impl Shuffle {
    /// Blocks of 2,048 rows in windows of 16: 32,768 rows, of which each column is in a core's cache.
    #[must_use]
    pub fn new(seed: u64) -> Shuffle {
        Shuffle { seed, block: 2048, blocks: 16 }
    }
}

/// Order of an epoch's rows: row of each place.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    rows: u64,
    block: u64,
    window: u64,
    key: u64,
    blocks: Permutation,
}

impl Order {
    pub(crate) fn new(shuffle: Shuffle, epoch: u64, rows: u64) -> Order {
        let block = u64::from(shuffle.block.max(1));
        let key = mix(shuffle.seed ^ mix(epoch.wrapping_add(1)));
        let blocks = Permutation::new(rows / block, key);
        Order { rows, block, window: block * u64::from(shuffle.blocks.max(1)), key, blocks }
    }

    /// Appends the rows of places `from..to`.
    pub(crate) fn rows(&self, from: u64, to: u64, rows: &mut Vec<u64>) {
        let mut place = from;
        while place < to {
            let window = place / self.window;
            let first = window * self.window;
            let end = (first + self.window).min(self.rows);
            let within = Permutation::new(end - first, mix(self.key ^ mix(!window)));
            let until = end.min(to);
            let starts = self.starts(first, end);
            rows.extend((place..until).map(|place| {
                let at = within.at(place - first);
                starts[(at / self.block) as usize] + at % self.block
            }));
            place = until;
        }
    }

    /// First rows of the blocks of a window. The incomplete block is the last of all.
    fn starts(&self, first: u64, end: u64) -> Vec<u64> {
        let whole = self.rows / self.block;
        let blocks = first / self.block..end.div_ceil(self.block);
        blocks.map(|block| if block < whole { self.blocks.at(block) } else { block } * self.block).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_epoch_has_every_row_once(rows in 0_u64..2000, block in 1_u32..70, blocks in 1_u32..9, seed: u64) {
            let order = Order::new(Shuffle { seed, block, blocks }, 3, rows);
            let mut found = Vec::new();
            order.rows(0, rows, &mut found);
            found.sort_unstable();
            prop_assert!(found.into_iter().eq(0..rows));
        }

        #[test]
        fn any_part_of_an_epoch_is_the_same_part(rows in 1_u64..2000, cut in 0.0..1.0, seed: u64) {
            let order = Order::new(Shuffle { seed, block: 16, blocks: 4 }, 0, rows);
            let (mut whole, mut parts) = (Vec::new(), Vec::new());
            let cut = (rows as f64 * cut) as u64;
            order.rows(0, rows, &mut whole);
            order.rows(0, cut, &mut parts);
            order.rows(cut, rows, &mut parts);
            prop_assert_eq!(whole, parts);
        }
    }

    #[test]
    fn epochs_and_seeds_differ() {
        let order = |seed, epoch| {
            let mut rows = Vec::new();
            Order::new(Shuffle { seed, block: 16, blocks: 4 }, epoch, 500).rows(0, 500, &mut rows);
            rows
        };
        assert!(order(1, 0) != order(1, 1) && order(1, 0) != order(2, 0));
        assert_eq!(order(1, 0), order(1, 0));
    }

    /// The first window of a long split has rows from all of it.
    #[test]
    fn a_window_is_a_sample_of_the_split() {
        let rows = 1_000_000;
        let mut window = Vec::new();
        Order::new(Shuffle { seed: 5, block: 64, blocks: 64 }, 0, rows).rows(0, 64 * 64, &mut window);
        let mean = window.iter().sum::<u64>() as f64 / window.len() as f64 / rows as f64;
        assert!((mean - 0.5).abs() < 0.15, "{mean}");
        let neighbours = window.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
        assert!(neighbours < 20, "{neighbours}");
    }
}
