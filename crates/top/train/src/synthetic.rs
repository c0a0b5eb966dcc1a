//! Planted rows with the tables and the lookups of a model.

use std::ops::Range;
use std::sync::Arc;

use steptime_dataset::{
    Error as DatasetError, Features, Hotness, Planted, PlantedOptions, Selection, Slot, Slots, Source,
};
use steptime_eager::TableSize;

use crate::Failure;
use crate::error::Error;

/// Distance of the rows of a bag.
const STRIDE: u64 = 0x9e37_79b1;

/// Planted rows with a column for each table, and the number of lookups of each.
///
/// # Errors
/// Where a table has more rows or lookups than a dataset can have.
pub fn planted(
    tables: &[TableSize],
    dense: usize,
    seed: u64,
    rows: u64,
    zipf: f64,
) -> Result<(Arc<Planted>, Vec<u32>), Failure> {
    let number = |value: i64, what: &str, table: usize| {
        let known = u32::try_from(value).ok().filter(|&value| value <= i32::MAX.cast_unsigned());
        known.ok_or_else(|| Error::Misfit {
            data: "synthetic data".to_owned(),
            reasons: vec![format!("  table {table} has {value} {what}: at most {} are possible", i32::MAX)],
        })
    };
    let all = |what, field: fn(&TableSize) -> i64| {
        let tables = tables.iter().enumerate();
        tables.map(|(at, table)| number(field(table), what, at)).collect::<Result<Vec<u32>, Error>>()
    };
    let (cardinalities, lookups) = (all("rows", |table| table.rows)?, all("lookups", |table| table.lookups)?);
    let options = PlantedOptions { zipf, dense, cardinalities, ..PlantedOptions::new(seed, rows) };
    Ok((Arc::new(Planted::new(options)?), lookups))
}

/// A range of planted rows. The first index of a bag is planted; those after it follow from it by a fixed stride, so that the best possible measures
/// remain those of the planted rows.
#[derive(Debug)]
pub struct Synthetic {
    planted: Arc<Planted>,
    features: Features,
    rows: Range<u64>,
}

impl Synthetic {
    /// Rows of planted data, with a number of lookups for each table.
    pub fn new(planted: Arc<Planted>, lookups: &[u32], rows: Range<u64>) -> Synthetic {
        let mut features = planted.features().clone();
        for (column, &lookups) in features.categorical.iter_mut().zip(lookups) {
            column.hotness = Hotness::Fixed(lookups);
        }
        features.rows = rows.end - rows.start;
        Synthetic { planted, features, rows }
    }

    /// Number of lookups of a row in each table.
    pub fn lookups(&self) -> impl Iterator<Item = usize> {
        self.features.categorical.iter().map(|column| match column.hotness {
            Hotness::Fixed(lookups) => lookups as usize,
            Hotness::Ragged => 0,
        })
    }
}

impl Source for Synthetic {
    fn features(&self) -> &Features {
        &self.features
    }

    fn rows(&self) -> u64 {
        self.features.rows
    }

    fn values(&self, _rows: &Selection<'_>, _column: usize) -> Result<u64, DatasetError> {
        Ok(0)
    }

    fn fill(&self, rows: &Selection<'_>, slots: Slots<'_>) -> Result<(), DatasetError> {
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
