//! Changed rows back to the host.

use super::kernels::Grids;
use super::{HostTable, RowCache};
use crate::{Args, Error, Pinned, Stream};

/// All rows, as they are on the host.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The tables.
    pub tables: &'a mut [HostTable],
    /// The optimizer's state of each table, as `RowOptimizer::state` has it; none where there is none.
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
        stream.record(&self.before)?;
        self.stream.wait(&self.before)?;
        let grids = Grids::new(&self.sets, 0, stream.device().multiprocessors());
        let args = Args::new()
            .slice(self.rows.as_ref())
            .slice(self.stamps.as_ref())
            .slice(self.uses.as_ref())
            .slice(self.moved.as_ref())
            .slice(self.leaving.as_ref())
            .value(self.rows.len() as u64)
            .value(protect);
        // SAFETY: the arguments are those of `collect`, which keeps to the number of slots.
        unsafe { self.kernels.collect.launch(&self.stream, grids.slots, args)? };
        self.travel(&grids, false)?;
        self.stream.synchronize()?;
        Ok(Contents { tables: &mut self.hosts, states: &mut self.states })
    }

    /// As [`RowCache::flush`]; then the cache is empty, so that rows on the host may be changed, and a batch that was
    /// brought or taken is dropped.
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
}
