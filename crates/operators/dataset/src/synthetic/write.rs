//! Planted rows on disk.

use std::path::Path;

use super::{Planted, PlantedRow};
use crate::convert::ordered::ordered;
use crate::disk::is_free;
use crate::{Block, Column, Error, Features, Rows, Source, Splits, Writer};

/// Rows that a thread takes at once.
const PART: u64 = 8192;

impl Planted {
    /// Writes all rows as the dataset `place`; the last `validation` rows are for validation.
    ///
    /// # Errors
    ///
    /// If the place is occupied or cannot be written, or an option is impossible.
    pub fn write(&self, place: &Path, validation: u64, threads: usize) -> Result<Features, Error> {
        let rows = self.rows();
        is_free(place)?;
        Error::option("rows for validation", validation, 0..rows.saturating_add(1), "there are fewer rows")?;
        Error::option("number of threads", threads as u64, 1..1 << 16, "choose from 1 to 65535")?;
        let empty = Features { rows: 0, splits: Splits::default(), ..self.features().clone() };
        let mut writer = Writer::create(place, empty.clone())?;
        let mut starts = (0..rows).step_by(PART as usize);
        let work = |start: u64| self.block(&empty, start..rows.min(start + PART));
        ordered(threads, || Ok(starts.next()), work, |block| writer.append(&block))?;
        let train = rows - validation;
        writer.finish(Splits { train: [0, train], validation: [train, rows] })
    }

    fn block(&self, features: &Features, rows: std::ops::Range<u64>) -> Result<Block, Error> {
        let (mut label, mut dense) = (Vec::new(), Vec::new());
        let mut values = vec![Vec::new(); features.categorical.len()];
        let mut row = PlantedRow::default();
        for number in rows {
            self.draw(number, &mut row);
            label.push(row.label);
            dense.extend_from_slice(&row.dense);
            values.iter_mut().zip(&row.indices).for_each(|(values, &index)| values.push(index));
        }
        let categorical = values.iter().map(|values| Column { values, lengths: None }).collect();
        Block::encode(features, &Rows { label: &label, dense: &dense, categorical })
    }
}
