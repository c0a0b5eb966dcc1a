//! Errors in lookups that kernels found.

use steptime_ops::embedding::{BadLookup, Bounds, EmbeddingError, Report};

use super::{Lookups, Tables};
use crate::{Buffer, Device, Error, Slice, Stream};

/// Counts without errors: 0 lookups, no first lookup, no first bag.
const CLEAN: [u64; 3] = [0, u64::MAX, u64::MAX];

/// Errors counted by kernels: lookups out of range, the first of them, and the first bag whose offsets decrease.
#[derive(Debug)]
pub struct Faults {
    found: Buffer<u64>,
}

impl Faults {
    pub(super) fn new(device: &Device) -> Result<Faults, Error> {
        let found = Buffer::from_host(&device.stream()?, &CLEAN)?;
        Ok(Faults { found })
    }

    /// Counters of the kernels. Updates are atomic, so several streams may count at once, as they may read.
    pub(super) fn found(&self) -> Slice<'_, u64> {
        self.found.as_ref()
    }

    /// Returns and resets the counts since the last time. Waits for all streams that count.
    pub(super) fn take(&mut self, stream: &Stream) -> Result<[u64; 3], Error> {
        let mut found = CLEAN;
        self.found.as_mut().before_writing(stream)?;
        self.found.as_ref().read(stream, &mut found)?;
        self.found.done(stream);
        if found != CLEAN {
            self.found.as_mut().write(stream, &CLEAN)?;
        }
        Ok(found)
    }
}

/// Converts the counts to the errors of the CPU operators.
pub(crate) fn explain(
    [bad, first, offset]: [u64; 3],
    stream: &Stream,
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
) -> Result<Report, Error> {
    if offset != u64::MAX {
        // The kernel reports the first bag of the group that holds the wrong one.
        let (all, found) = (lookups.offsets().read(stream, 0..lookups.offsets().len())?, lookups.len());
        let before = |at: usize| if at == 0 { 0 } else { all[at - 1] };
        let wrong = |at: &usize| {
            let value = all[*at];
            value < before(*at)
                || value > found as i64
                || (*at == 0 && value != 0)
                || (*at + 1 == all.len() && value != found as i64)
        };
        let at = (offset as usize..all.len()).find(wrong).unwrap_or(offset as usize);
        let (value, before) = (all[at], before(at));
        return Err(EmbeddingError::Offset { at, value, before, indices: found }.into());
    }
    if bad == 0 {
        return Ok(Report::default());
    }
    let lookup = first as usize;
    let index = lookups.indices().read(stream, lookup..lookup + 1)?[0];
    let offsets = lookups.offsets().read(stream, 0..lookups.offsets().len())?;
    // The last bag that begins at or before the lookup contains it, so it is not empty.
    let pair = offsets.partition_point(|&offset| offset <= first as i64).saturating_sub(1);
    let (table, bag) = (pair / lookups.bags(), pair % lookups.bags());
    if bounds == Bounds::Error {
        let rows = tables.table(table);
        let (name, rows) = (rows.name().to_owned(), rows.rows());
        return Err(EmbeddingError::Index { table, name, bag, lookup, index, rows }.into());
    }
    let first = Some(BadLookup { table, bag, lookup, index });
    Ok(Report { out_of_range: bad as usize, first })
}
