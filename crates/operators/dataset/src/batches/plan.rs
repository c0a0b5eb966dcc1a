//! Rows of each batch, over all epochs.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Place in the sequence of batches, between two of them. A run that starts there has the same batches as one that
/// never stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Rows of the epoch that are before this place.
    pub row: u64,
}

/// Treatment of the rows at the end of an epoch that do not fill a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Last {
    /// They are a batch with fewer rows.
    #[default]
    Short,
    /// They are left out.
    Drop,
}

/// Batches from a start to the end of the last epoch, numbered from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rows: u64,
    pub(crate) batch: u64,
    pub(crate) last: Last,
    pub(crate) start: Position,
    pub(crate) epochs: u64,
}

impl Plan {
    /// Batches of an epoch from one of its rows on.
    fn batches(&self, from: u64) -> u64 {
        let rows = self.rows.saturating_sub(from);
        match self.last {
            Last::Short => rows.div_ceil(self.batch),
            Last::Drop => rows / self.batch,
        }
    }

    /// Number of batches.
    pub(crate) fn len(&self) -> u64 {
        let whole = self.epochs.saturating_sub(self.start.epoch).checked_sub(1);
        whole.map_or(0, |whole| {
            self.batches(self.start.row).saturating_add(self.batches(0).saturating_mul(whole))
        })
    }

    /// Epoch of a batch, and its places in the order of that epoch.
    pub(crate) fn places(&self, batch: u64) -> (u64, Range<u64>) {
        let Position { epoch, row } = self.start;
        let first = self.batches(row);
        let (epoch, row) = if batch < first {
            (epoch, row + batch * self.batch)
        } else {
            let each = self.batches(0).max(1);
            let batch = batch - first;
            (epoch + 1 + batch / each, batch % each * self.batch)
        };
        (epoch, row..self.rows.min(row + self.batch))
    }

    /// Place after a number of batches: the end of an epoch is the beginning of the next.
    pub(crate) fn position(&self, batches: u64) -> Position {
        if batches == 0 && self.batches(self.start.row) > 0 {
            return self.start;
        }
        let (epoch, places) = self.places(batches);
        Position { epoch, row: places.start }
    }
}
