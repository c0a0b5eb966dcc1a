//! The batch in use: its rows for kernels.

use super::RowCache;
use super::batch::{Batch, BatchRequest};
use crate::Error;
use crate::embedding::{Ints, Lookups};

impl RowCache {
    /// Marks the batch taken last as finished, so that its rows may be evicted for the next one.
    pub fn finish(&mut self) {
        self.current = None;
    }

    /// The batch taken last, which must be these lookups.
    ///
    /// # Errors
    ///
    /// Another batch was taken last, or none.
    pub fn batch<'a>(&'a mut self, lookups: &Lookups<'a>) -> Result<Batch<'a>, Error> {
        let Some(batch) = self.current.filter(|batch| batch.is(lookups)) else {
            return Err(Error::Unsupported {
                what: "a batch that was not taken".into(),
                remedy: "call `take` with these lookups before",
            });
        };
        self.translate(batch, lookups)
    }

    /// Does as [`RowCache::batch`] for a copy of the lookups that were taken: the same indices and offsets in other memory. Only their number is
    /// compared.
    ///
    /// # Errors
    ///
    /// No batch was taken last, or one of another size.
    pub fn batch_of_copy<'a>(&'a mut self, lookups: &Lookups<'a>) -> Result<Batch<'a>, Error> {
        let Some(batch) = self.current.filter(|batch| batch.lookups == lookups.len()) else {
            return Err(Error::Unsupported {
                what: format!("a copy of {} lookups that were not taken", lookups.len()),
                remedy: "call `take` with these lookups before",
            });
        };
        self.translate(batch, lookups)
    }

    /// A batch with the slots of its rows.
    fn translate<'a>(&'a mut self, batch: BatchRequest, lookups: &Lookups<'a>) -> Result<Batch<'a>, Error> {
        let slots = self.translated[batch.place].as_ref().slice(0..batch.lookups);
        let mut translated = Lookups::new(lookups.bags(), Ints::I32(slots), lookups.offsets())?;
        if let Some(weights) = lookups.weights() {
            translated = translated.with_weights(weights)?;
        }
        Ok(Batch { tables: &mut self.slots, lookups: translated, optimizer: self.optimizer.as_mut() })
    }

    /// Whether a batch was taken and not finished.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.current.is_some()
    }

    /// Index of the buffer with the slots of the batch taken last, 0 or 1. Batches with the same index have their slots at the same address, so
    /// that captured kernels of one run for the other.
    #[must_use]
    pub fn buffer(&self) -> usize {
        self.current.map_or(0, |batch| batch.place)
    }
}
