//! The rows of a split as a source of batches.

use std::ops::Range;
use std::sync::Arc;

use super::files::{Opened, StoredColumn};
use super::gather;
use crate::{Categorical, Error, Features, Hotness, Selection, Slot, Slots, Source};

/// Rows of a dataset on disk. Row 0 is the first row of the split.
#[derive(Debug, Clone)]
pub struct Split {
    opened: Arc<Opened>,
    rows: Range<u64>,
}

/// Rows that are copied together column by column: their indices stay in a core's cache until they are checked.
const TOGETHER: usize = 4096;

impl Split {
    pub(super) fn new(opened: Arc<Opened>, rows: Range<u64>) -> Split {
        Split { opened, rows }
    }

    fn column(&self, column: usize) -> StoredRows<'_> {
        StoredRows {
            stored: &self.opened.categorical[column],
            described: &self.opened.features.categorical[column],
            first: self.rows.start,
        }
    }
}

impl Source for Split {
    fn features(&self) -> &Features {
        &self.opened.features
    }

    fn rows(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    fn values(&self, rows: &Selection<'_>, column: usize) -> Result<u64, Error> {
        let column = self.column(column);
        match rows {
            Selection::Range(range) if !range.is_empty() => {
                let (from, to) = (column.row(range.start)?.0, column.row(range.end - 1)?.1);
                to.checked_sub(from).ok_or_else(|| column.broken(range.start, from, to))
            }
            _ => (0..rows.len()).try_fold(0_u64, |sum, place| {
                let (from, to) = column.row(rows.row(place))?;
                Ok(sum.saturating_add(to - from))
            }),
        }
    }

    fn fill(&self, rows: &Selection<'_>, slots: Slots<'_>) -> Result<(), Error> {
        let Opened { features, label, dense, .. } = &*self.opened;
        gather::dense(Default::default(), &label.map, 1, self.rows.start, rows, slots.label);
        if let Some(stored) = dense {
            let (r#type, columns) = (features.dense.r#type, features.dense.columns.len());
            gather::dense(r#type, &stored.map, columns, self.rows.start, rows, slots.dense);
        }
        for (place, slot) in slots.categorical.into_iter().enumerate() {
            let column = self.column(place);
            match column.described.hotness {
                Hotness::Fixed(hotness) => column.fixed(hotness as usize, rows, slot.values)?,
                Hotness::Ragged => column.ragged(rows, slot)?,
            }
        }
        Ok(())
    }
}

/// A stored column from the first row of a split on.
struct StoredRows<'a> {
    stored: &'a StoredColumn,
    described: &'a Categorical,
    first: u64,
}

impl StoredRows<'_> {
    fn fixed(&self, hotness: usize, rows: &Selection<'_>, to: &mut [i32]) -> Result<(), Error> {
        for (part, to) in to.chunks_mut(TOGETHER * hotness).enumerate() {
            let (start, count) = (part * TOGETHER, to.len() / hotness);
            let part = match rows {
                Selection::Range(rows) => {
                    let start = rows.start + start as u64;
                    Selection::Range(start..start + count as u64)
                }
                Selection::List(rows) => Selection::List(&rows[start..start + count]),
            };
            let bytes = &self.stored.values.map;
            let greatest = gather::indices(self.described.r#type, bytes, hotness, self.first, &part, to);
            if greatest >= self.described.cardinality {
                return Err(self.outside(to, |place| part.row(place / hotness)));
            }
        }
        Ok(())
    }

    fn ragged(&self, rows: &Selection<'_>, slot: Slot<'_>) -> Result<(), Error> {
        let Some(offsets) = slot.offsets else { return Ok(()) };
        offsets[0] = 0;
        let mut end = 0;
        for (place, offset) in offsets[1..].iter_mut().enumerate() {
            let row = rows.row(place);
            let (from, to) = self.row(row)?;
            let start = end;
            end += (to - from) as usize;
            // Overlapping rows of damaged offsets may have more values than their ends say.
            let Some(values) = slot.values.get_mut(start..end) else {
                return Err(self.broken(row, from, to));
            };
            let values_of_row = Selection::Range(from..to);
            let bytes = &self.stored.values.map;
            let greatest = gather::indices(self.described.r#type, bytes, 1, 0, &values_of_row, values);
            if greatest >= self.described.cardinality {
                return Err(self.outside(values, |_| row));
            }
            *offset = end as i32;
        }
        Ok(())
    }

    /// First value and end of the values of a row with offsets.
    fn row(&self, row: u64) -> Result<(u64, u64), Error> {
        let (Some(offsets), Some(values)) = (&self.stored.offsets, self.described.values) else {
            return Ok((0, 0));
        };
        let (offsets, _) = offsets.map.as_chunks::<8>();
        let at = (self.first + row) as usize;
        let (from, to) = (u64::from_le_bytes(offsets[at]), u64::from_le_bytes(offsets[at + 1]));
        if from <= to && to <= values { Ok((from, to)) } else { Err(self.broken(row, from, to)) }
    }

    fn broken(&self, row: u64, from: u64, to: u64) -> Error {
        let StoredColumn { values, offsets } = self.stored;
        Error::Offsets {
            path: offsets.as_ref().unwrap_or(values).path.clone(),
            row: self.first + row,
            column: self.described.name.clone(),
            from,
            to,
            values: self.described.values.unwrap_or(0),
        }
    }

    /// Error of the first index outside the table; `row` is the selected row of a value.
    fn outside(&self, values: &[i32], row: impl Fn(usize) -> u64) -> Error {
        let cardinality = self.described.cardinality;
        let outside = |index: &i32| index.cast_unsigned() >= cardinality;
        let place = values.iter().position(outside).unwrap_or(0);
        Error::Index {
            path: self.stored.values.path.clone(),
            row: self.first + row(place),
            column: self.described.name.clone(),
            value: i64::from(values[place]),
            cardinality,
        }
    }
}
