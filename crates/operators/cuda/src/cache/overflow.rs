//! Batches that do not fit.

use super::{RowCache, Sets, WAYS};
use crate::embedding::Lookups;
use crate::{Error, Stream};

impl RowCache {
    /// The error of a batch that does not fit: its numbers of rows, of overflowing sets, and of the worst one's places.
    pub(super) fn overflow(
        &self,
        stream: &Stream,
        lookups: &Lookups<'_>,
        [wanted, overflows, worst]: [u64; 3],
    ) -> Result<Error, Error> {
        let slots: usize = self.sets.iter().map(|sets| sets.slots()).sum();
        let beside = if self.current.is_some() { ", next to the batch in use" } else { "" };
        let mut what = format!(
            "a batch of {wanted} distinct rows in a cache of {slots} slots{beside}: {overflows} sets need more \
             than their {WAYS} places, the worst {worst}"
        );
        let indices = lookups.indices().read(stream, 0..lookups.len())?;
        let offsets = lookups.offsets().read(stream, 0..lookups.offsets().len())?;
        let place = |pair: usize| offsets[pair].clamp(0, indices.len() as i64) as usize;
        for (at, (sets, host)) in self.sets.iter().zip(&self.hosts).enumerate() {
            let [first, end] = [at, at + 1].map(|table| place(table * lookups.bags()));
            let needed = Sets::for_batch(host.rows(), &indices[first..end.max(first)]).slots();
            if needed > sets.slots() {
                what += &format!("; table {:?} needs {needed} slots and has {}", host.name(), sets.slots());
            }
        }
        let remedy = if self.current.is_some() {
            "give the cache more slots, cut the batch, or call `finish` before its `prefetch`"
        } else {
            "give the cache more slots, or cut the batch"
        };
        Ok(Error::Unsupported { what, remedy })
    }
}
