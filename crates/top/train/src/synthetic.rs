//! Planted rows with the tables and the lookups of a model.

use std::ops::Range;

use steptime_dataset::{Error, Features, Hotness, Planted, Selection, Slot, Slots, Source};

/// Distance of the rows of a bag.
const STRIDE: u64 = 0x9e37_79b1;

/// A range of planted rows. The first index of a bag is planted; those after it follow from it by a fixed stride, so that the best possible measures
/// remain those of the planted rows.
#[derive(Debug)]
pub struct Synthetic {
    planted: std::sync::Arc<Planted>,
    features: Features,
    rows: Range<u64>,
}

impl Synthetic {
    /// Rows of planted data, with a number of lookups for each table.
    pub fn new(planted: std::sync::Arc<Planted>, lookups: &[u32], rows: Range<u64>) -> Synthetic {
        let mut features = planted.features().clone();
        for (column, &lookups) in features.categorical.iter_mut().zip(lookups) {
            column.hotness = Hotness::Fixed(lookups);
        }
        features.rows = rows.end - rows.start;
        Synthetic { planted, features, rows }
    }
}

impl Source for Synthetic {
    fn features(&self) -> &Features {
        &self.features
    }

    fn rows(&self) -> u64 {
        self.features.rows
    }

    fn values(&self, _rows: &Selection<'_>, _column: usize) -> Result<u64, Error> {
        Ok(0)
    }

    fn fill(&self, rows: &Selection<'_>, slots: Slots<'_>) -> Result<(), Error> {
        let count = rows.len();
        let shifted: Vec<u64> = (0..count).map(|place| self.rows.start + rows.row(place)).collect();
        let mut first: Vec<Vec<i32>> = slots.categorical.iter().map(|_| vec![0; count]).collect();
        let categorical = first.iter_mut().map(|values| Slot { values, offsets: None }).collect();
        let Slots { label, dense, categorical: bags } = slots;
        self.planted.fill(&Selection::List(&shifted), Slots { label, dense, categorical })?;
        for ((slot, first), column) in bags.into_iter().zip(first).zip(&self.features.categorical) {
            let lookups = slot.values.len() / count.max(1);
            for (bag, first) in slot.values.chunks_mut(lookups.max(1)).zip(first) {
                fill_bag(bag, first, column.cardinality);
            }
        }
        Ok(())
    }
}

/// Fills a bag from its first index.
fn fill_bag(bag: &mut [i32], first: i32, rows: u32) {
    let rows = u64::from(rows.max(1));
    let stride = STRIDE % rows;
    let mut index = u64::from(first.unsigned_abs());
    for to in bag {
        // Below the number of rows, which fits in an i32.
        *to = index as i32;
        index = (index + stride) % rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bag_stays_in_its_table_and_begins_with_its_index() {
        for rows in [1, 2, 7, 1000, i32::MAX as u32] {
            for first in [0, rows / 2, rows - 1] {
                let mut bag = [-1; 9];
                fill_bag(&mut bag, first as i32, rows);
                assert_eq!(bag[0], first as i32);
                assert!(
                    bag.iter().all(|&index| (0..i64::from(rows)).contains(&i64::from(index))),
                    "{rows} {bag:?}"
                );
            }
        }
    }
}
