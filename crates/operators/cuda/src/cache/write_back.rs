//! Row transfers: changed rows back to the host, requested rows to the device.

use super::kernels::Grids;
use super::{HostTable, RowCache};
use crate::{Args, Error, Pinned, Stream};

/// All rows, as stored on the host.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The tables.
    pub tables: &'a mut [HostTable],
    /// The optimizer's state of each table, in the layout of `RowOptimizer::state`; empty without an optimizer.
    pub states: &'a mut [Pinned<f32>],
}

impl RowCache {
    /// Waits until everything in `stream` is done and all changed rows are on the host.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn flush(&mut self, stream: &Stream) -> Result<Contents<'_>, Error> {
        self.place()?;
        let outstanding = self.current.or(self.pending);
        let protect = outstanding.map_or(self.number + 1, |batch| batch.number);
        self.wait_for_others(stream)?;
        stream.record(&self.before)?;
        self.stream.wait(&self.before)?;
        let grids = Grids::new(&self.sets, 0, stream.device().multiprocessors());
        let args = Args::new()
            .own(self.rows.as_ref())
            .own(self.stamps.as_ref())
            .own(self.uses.as_ref())
            .own(self.moved.as_ref())
            .own(self.leaving.as_ref())
            .value(self.rows.len() as u64)
            .value(protect);
        // SAFETY: the arguments are those of `collect`, which stays within the number of slots. All memory is named.
        unsafe { self.kernels.collect.launch(&self.stream, grids.slots, args)? };
        self.travel(&grids, false)?;
        self.stream.synchronize()?;
        Ok(Contents { tables: &mut self.hosts, states: &mut self.states })
    }

    /// Does [`RowCache::flush`] and empties the cache, so that rows on the host may be changed. A batch that was
    /// prefetched or taken is dropped.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn forget(&mut self, stream: &Stream) -> Result<Contents<'_>, Error> {
        self.flush(stream)?;
        (self.pending, self.current) = (None, None);
        self.rows.as_mut().fill_bytes(&self.stream, 0xff)?;
        self.stamps.as_mut().fill_bytes(&self.stream, 0)?;
        self.uses.as_mut().fill_bytes(&self.stream, 0)?;
        self.stream.synchronize()?;
        Ok(Contents { tables: &mut self.hosts, states: &mut self.states })
    }

    /// Moves rows according to `moved` and `leaving`.
    pub(super) fn travel(&self, grids: &Grids, fetch: bool) -> Result<(), Error> {
        let args = Args::new()
            .slice(self.device_entries.as_ref())
            .own(self.rows.as_ref())
            .own(self.moved.as_ref())
            .own(self.leaving.as_ref())
            .value(u32::from(fetch))
            .value(grids.each);
        // SAFETY: the arguments are those of `travel`; rows and slots are those of tables that are kept here, whose
        // sizes `place` checked. Rows of the host are handed out only after this stream is done. Slots and states are
        // used in another stream at the same time on purpose: `plan` evicts no row of the batch in use, this stream
        // waited for the batches before (`wait_for_others`, then `before`), and later ones wait for `ready`.
        unsafe { self.kernels.travel.launch(&self.stream, grids.travel, args) }
    }
}
