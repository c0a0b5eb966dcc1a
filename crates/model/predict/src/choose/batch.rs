//! Search for the largest batch that fits a GPU, by peak memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use steptime_cost::device::DeviceSpec;
use steptime_rewrite::{BatchDims, ResizeBatch};

use super::operating_point::OperatingPoint;
use crate::memory;
use crate::query::WhatIfs;

/// Upper limit of the search, in samples.
const MOST: u64 = 1 << 26;
/// Number of batches considered between a power of two and the next.
const PLACES: u64 = 32;
/// Maximum number of batches tried per GPU; in the second half of them, intervals are bisected.
const TRIES: usize = 48;

/// The largest batch that fits.
#[derive(Debug)]
pub enum LargestBatch {
    /// The step at it.
    At(Box<OperatingPoint>),
    /// Not even one sample fits.
    Nothing {
        /// Memory needed by a step of one sample, in bytes.
        needs: u64,
    },
}

/// Memory of steps of other batches, shared by all GPUs of the query.
pub(super) struct Search<'a, 'q> {
    asked: &'a [WhatIfs<'q>],
    from: Option<u64>,
    /// Peaks by batch, one for each of the `capabilities`.
    known: Mutex<BTreeMap<u64, Result<Vec<u64>, String>>>,
    capabilities: Vec<DeviceSpec>,
}

impl<'a, 'q> Search<'a, 'q> {
    /// Makes a search from queries about one step of `from` samples.
    pub(super) fn new(asked: &'a [WhatIfs<'q>], from: Option<u64>) -> Search<'a, 'q> {
        let mut capabilities: Vec<DeviceSpec> = Vec::new();
        for spec in asked.iter().filter_map(WhatIfs::spec) {
            if !capabilities.iter().any(|known| capability(known) == capability(spec)) {
                capabilities.push(spec.clone());
            }
        }
        Search { asked, from, known: Mutex::default(), capabilities }
    }

    /// Finds the step at the largest batch that fits a GPU, or the reason why it is unknown.
    pub(super) fn largest(&self, asked: &WhatIfs<'_>, spec: &DeviceSpec) -> Result<LargestBatch, String> {
        let from = self.from.filter(|&batch| batch > 0);
        let from = from.ok_or("the batch is not recorded: give --recorded-batch N")?;
        let room = memory::room(spec).ok_or("the memory of the GPU is not known")?;
        let peak = |batch| self.peak(batch, spec);
        let batch = match largest(from, room, peak)? {
            Some(batch) => batch,
            None => return Ok(LargestBatch::Nothing { needs: self.peak(1, spec)? }),
        };
        let edited = asked.edited(&[&resized(from, batch)]).map_err(|error| error.to_string())?;
        let point = OperatingPoint::price(asked, &edited, Some(batch)).map_err(|error| error.to_string())?;
        Ok(LargestBatch::At(Box::new(point)))
    }

    /// Peak memory of a step of `batch` samples, in bytes.
    fn peak(&self, batch: u64, spec: &DeviceSpec) -> Result<u64, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&batch).cloned();
        let peaks = known.unwrap_or_else(|| {
            let found = self.peaks(batch);
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(batch, found.clone());
            found
        })?;
        let at = self.capabilities.iter().position(|known| capability(known) == capability(spec));
        Ok(peaks[at.unwrap_or_default()])
    }

    /// Peak memory for each compute capability.
    fn peaks(&self, batch: u64) -> Result<Vec<u64>, String> {
        let (Some(asked), Some(from)) = (self.asked.first(), self.from) else { return Ok(Vec::new()) };
        let edited = asked.edited(&[&resized(from, batch)]).map_err(|error| error.to_string())?;
        let peak = |spec: &DeviceSpec| -> Result<u64, String> {
            let found = memory::peak_of_changed(asked.recorded(), Some(spec), &edited.step, edited.flat());
            let peak = found
                .ok_or("the memory of the step is not known: record the step with its execution trace")?;
            Ok(peak.total())
        };
        self.capabilities.iter().map(peak).collect()
    }
}

fn capability(spec: &DeviceSpec) -> u8 {
    spec.compute_capability[0]
}

/// Change of the batch.
pub(super) fn resized(from: u64, to: u64) -> ResizeBatch {
    ResizeBatch { to, from: Some(from), dims: BatchDims::Inferred }
}

/// The largest considered batch whose peak is at most `room`; `None` where one sample needs more.
fn largest(from: u64, room: u64, peak: impl Fn(u64) -> Result<u64, String>) -> Result<Option<u64>, String> {
    // Bounds of the result with their memory: the lower one fits, the upper one does not.
    let at = |batch: u64| -> Result<(u64, u64), String> { Ok((batch, peak(batch)?)) };
    let recorded = at(from)?;
    let (mut low, mut high) = if recorded.1 <= room {
        (recorded, None)
    } else {
        let one = at(1)?;
        if one.1 > room {
            return Ok(None);
        }
        (one, Some(recorded))
    };
    let mut before = None;
    for tried in 0..TRIES {
        let next = after(low.0);
        if low.0 >= MOST || high.is_some_and(|(batch, _)| batch <= next) {
            break;
        }
        let guess = match (high, before) {
            (Some(high), _) if tried > TRIES / 2 => low.0 + (high.0 - low.0) / 2,
            (Some(high), _) => between(low, high, room),
            (None, Some(before)) => between(before, low, room).max(low.0 * 2),
            (None, None) => low.0 * 2,
        };
        let highest = high.map_or(MOST, |(batch, _)| batch - 1);
        let guess = at(down(guess.min(highest)).clamp(next.min(highest), highest))?;
        if guess.1 <= room {
            (before, low) = (Some(low), guess);
        } else {
            high = Some(guess);
        }
    }
    Ok(Some(low.0))
}

/// The batch at which the line through two others reaches `room`.
fn between(low: (u64, u64), high: (u64, u64), room: u64) -> u64 {
    let rise = high.1 as f64 - low.1 as f64;
    if rise <= 0.0 {
        return high.0.saturating_mul(16);
    }
    let share = (room as f64 - low.1 as f64) / rise;
    (low.0 as f64 + share * (high.0 - low.0) as f64).clamp(1.0, MOST as f64) as u64
}

/// Distance between considered batches around a batch.
fn grain(batch: u64) -> u64 {
    ((1 << batch.max(1).ilog2()) / PLACES).max(1)
}

/// The considered batch at or below a batch.
fn down(batch: u64) -> u64 {
    batch / grain(batch) * grain(batch)
}

/// The considered batch above a batch.
fn after(batch: u64) -> u64 {
    down(batch) + grain(batch)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The result for a step of `fixed` bytes plus `each` bytes per sample, and the number of batches tried.
    fn found(from: u64, room: u64, fixed: u64, each: u64) -> (Option<u64>, usize) {
        let tries = Cell::new(0);
        let peak = |batch: u64| {
            tries.set(tries.get() + 1);
            Ok(fixed + each * batch)
        };
        let found = largest(from, room, peak).expect("every batch is known");
        (found, tries.get())
    }

    #[test]
    fn it_fits_and_the_next_place_does_not() {
        for (from, room, fixed, each) in [
            (32, 1_000_000, 1_000, 7),
            (2048, 10_000, 100, 9),
            (1000, 5_000_000, 0, 1),
            (3, 100, 90, 2),
            (7, 50, 1, 1),
        ] {
            let (batch, tries) = found(from, room, fixed, each);
            let batch = batch.expect("some fit");
            assert!(fixed + each * batch <= room, "{batch}");
            assert!(fixed + each * after(batch) > room, "{batch} and {}", after(batch));
            assert!(tries <= 10, "{tries} of {from}");
        }
    }

    #[test]
    fn memory_that_bends_is_followed_too() {
        for room in [3_000u64, 40_000, 5_000_000] {
            let peak = |batch: u64| Ok(500 + batch * batch / 64 + if batch > 100 { 2_000 } else { 0 });
            let batch = largest(32, room, peak).expect("known").expect("some fit");
            assert!(peak(batch).unwrap() <= room && peak(after(batch)).unwrap() > room, "{batch} of {room}");
        }
    }

    #[test]
    fn where_one_sample_is_too_much_none_fits() {
        assert_eq!(found(64, 100, 101, 1).0, None);
    }

    #[test]
    fn a_step_whose_memory_does_not_grow_fits_at_any_batch() {
        assert_eq!(found(64, 100, 50, 0).0, Some(MOST));
    }

    #[test]
    fn what_is_not_known_is_no_answer() {
        assert_eq!(largest(8, 100, |_| Err("no".to_owned())), Err("no".to_owned()));
    }
}
