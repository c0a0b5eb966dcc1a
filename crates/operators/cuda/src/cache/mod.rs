//! Tables larger than the GPU's memory: rows are stored in host memory, and the device caches the recent ones.
//!
//! The kernels of [`crate::embedding`] run on a table of slots, with lookups that contain slots in place of rows. The
//! rows of the next batch are copied on a second stream while a batch runs:
//!
//! ```no_run
//! # use steptime_cuda::{Stream, Error, embedding::Lookups};
//! # use steptime_cuda::cache::{Access, RowCache};
//! # fn run(cache: &mut RowCache, stream: &Stream, batches: &[Lookups<'_>]) -> Result<(), Error> {
//! cache.prefetch(stream, &batches[0], Access::Train)?;
//! for (at, lookups) in batches.iter().enumerate() {
//!     cache.take(stream, lookups)?;
//!     if let Some(next) = batches.get(at + 1) {
//!         cache.prefetch(stream, next, Access::Train)?;
//!     }
//!     let batch = cache.batch(lookups)?;
//!     // forward and backward in `stream`, with `batch.tables`, `batch.lookups` and `batch.optimizer`
//! }
//! cache.flush(stream)?;
//! println!("{:.1} % hits", 100.0 * cache.statistics().hit_rate());
//! # Ok(()) }
//! ```
//!
//! Results are bit-identical to those of tables without a cache, except with stochastic rounding, whose random numbers
//! depend on the slot.

mod batch;
mod host;
mod in_use;
mod kernels;
mod make;
mod operands;
mod overflow;
mod policy;
mod reference;
mod statistics;
mod write_back;

use steptime_ops::embedding::{Bounds, Pooling, Report};

use batch::BatchRequest;
pub use batch::{Access, Batch};
pub use host::HostTable;
pub use policy::{Policy, Sets, WAYS};
pub use reference::{Outcome, Simulation};
pub use statistics::Statistics;
pub use write_back::Contents;

use self::kernels::{DeviceTable, Grids, Kernels, Plane};
use crate::embedding::{Lookups, RowOptimizer, Sizes, Tables, explain};
use crate::geometry::Geometry;
use crate::{Args, Buffer, Error, Event, Pinned, Stream};

/// A host table and its share of the cache.
#[derive(Debug)]
pub struct CachedTable {
    /// The table.
    pub table: HostTable,
    /// Pooling of its bags.
    pub pooling: Pooling,
    /// Rows that the device holds at once, rounded up to whole sets of [`WAYS`]. The rows of two batches must fit, and
    /// sets are not filled evenly: three times as many slots as two batches have distinct rows are enough.
    pub slots: usize,
}

/// A set-associative cache of tables' rows in the device's memory.
#[derive(Debug)]
pub struct RowCache {
    stream: Stream,
    hosts: Vec<HostTable>,
    /// The host's tables, as views on the device.
    views: Tables<'static>,
    slots: Tables<'static>,
    optimizer: Option<RowOptimizer>,
    states: Vec<Pinned<f32>>,
    sizes: Sizes,
    bounds: Bounds,
    sets: Vec<Sets>,
    kernels: Kernels,
    entries: Vec<DeviceTable>,
    device_entries: Buffer<DeviceTable>,
    placed: bool,
    rows: Buffer<u32>,
    stamps: Buffer<u32>,
    uses: Buffer<u32>,
    leaving: Buffer<u32>,
    moved: Buffer<u32>,
    wanted: Buffer<u32>,
    counts: Buffer<u64>,
    seen: Pinned<u64>,
    translated: [Buffer<i32>; 2],
    before: Event,
    /// The work before the batch taken last is done.
    taken: Event,
    planned: Event,
    ready: Event,
    number: u32,
    pending: Option<BatchRequest>,
    current: Option<BatchRequest>,
    statistics: Statistics,
}

impl RowCache {
    /// The slots as tables, for making operators.
    #[must_use]
    pub fn tables(&self) -> &Tables<'static> {
        &self.slots
    }

    /// The sizes for making operators, for outputs whose rows are `stride` elements apart.
    #[must_use]
    pub fn sizes(&self, stride: usize) -> Sizes {
        Sizes { index_width: size_of::<i32>(), stride, ..self.sizes }
    }

    /// Assignment of a table's rows to sets.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn sets(&self, table: usize) -> Sets {
        self.sets[table]
    }

    /// Starts to copy the rows of a batch, on a second stream, after the work that `stream` holds now. So call it right
    /// after the batch before was taken, and before that batch's kernels are put into `stream`. The lookups must not
    /// change until the batch is finished. Rows that do not fit are reported by [`RowCache::take`].
    ///
    /// # Errors
    ///
    /// A batch that was prefetched and not taken; other bags or types than the cache was made for, or more lookups.
    pub fn prefetch(&mut self, stream: &Stream, lookups: &Lookups<'_>, access: Access) -> Result<(), Error> {
        self.check(lookups)?;
        stream.record(&self.before)?;
        self.stream.wait(&self.before)?;
        lookups.hand_over(stream, &self.stream);
        self.request(stream, lookups, access)
    }

    /// Does as [`RowCache::prefetch`] after the kernels of the batch taken last were put into `stream`: the rows are copied beside these kernels,
    /// after the work that `stream` held when that batch was taken. The lookups are written by the work that `writer` holds now.
    ///
    /// # Errors
    ///
    /// As those of [`RowCache::prefetch`].
    pub fn prefetch_beside(
        &mut self,
        stream: &Stream,
        writer: &Stream,
        lookups: &Lookups<'_>,
        access: Access,
    ) -> Result<(), Error> {
        self.check(lookups)?;
        let side = &self.stream;
        if self.current.is_some() {
            side.wait(&self.taken)?;
        } else {
            stream.record(&self.before)?;
            side.wait(&self.before)?;
        }
        writer.record(&self.before)?;
        side.wait(&self.before)?;
        lookups.hand_over(writer, side);
        self.request(stream, lookups, access)
    }

    /// Plans a batch and moves its rows on the second stream, which waits for the lookups and for the batches before the one in use.
    fn request(&mut self, stream: &Stream, lookups: &Lookups<'_>, access: Access) -> Result<(), Error> {
        self.place()?;
        let number = self.number + 1;
        let protect = self.current.map_or(number, |current| current.number);
        let place = self.current.map_or(0, |current| 1 - current.place);
        let grids = Grids::new(&self.sets, lookups.len(), stream.device().multiprocessors());
        self.wait_for_others(stream)?;
        let side = &self.stream;
        let translated = &mut self.translated[place];
        translated.hand_over(stream, side);
        translated.as_mut().fill_bytes(side, 0xff)?;
        self.counts.as_mut().fill_bytes(side, 0)?;
        let given = || {
            lookups
                .read_by(Args::new())
                .slice(self.device_entries.as_ref())
                .value(lookups.indices().address())
                .value(lookups.offsets().address())
                .value(lookups.bags() as u32)
                .value(lookups.len() as u64)
        };
        let (wanted, rows, counts) = (self.wanted.as_ref(), self.rows.as_ref(), self.counts.as_ref());
        let dirty = if access == Access::Train { 1_u32 << 31 } else { 0 };
        let plan = Args::new()
            .slice(self.device_entries.as_ref())
            .own(wanted)
            .own(rows)
            .own(self.stamps.as_ref())
            .own(self.uses.as_ref())
            .own(self.moved.as_ref())
            .own(self.leaving.as_ref())
            .value(number)
            .value(protect)
            .value(dirty)
            .own(counts);
        // SAFETY: the arguments are those of the kernels; buffers were made for these tables and as many lookups, which
        // were checked, and the kernels stay within them whatever indices and offsets hold. All memory is named.
        unsafe {
            self.kernels.mark.launch(side, grids.lookups, given().own(wanted).own(counts))?;
            self.kernels.plan.launch(side, grids.sets, plan)?;
            self.kernels.translate.launch(
                side,
                grids.lookups,
                given().slice(rows).own(translated.as_ref()),
            )?;
            // The copy is read after `planned`, and waited for before its memory is freed.
            self.counts.as_ref().read_async(side, &mut self.seen)?;
        }
        side.record(&self.planned)?;
        self.travel(&grids, true)?;
        self.wanted.as_mut().fill_bytes(&self.stream, 0)?;
        self.stream.record(&self.ready)?;
        self.number = number;
        self.pending = Some(BatchRequest::new(lookups, number, place));
        Ok(())
    }

    /// Takes the prefetched batch, which must be these lookups: later work in `stream` waits for its rows. The batch
    /// before is finished: nothing more of it may be put into `stream`. This waits until the batch is planned, not
    /// until its rows have arrived.
    ///
    /// # Errors
    ///
    /// The batch was not prefetched; its rows do not fit next to those of the batch before; with [`Bounds::Error`], the
    /// first index that is out of range. Then the batch is dropped, the batch before stays valid, and no row is lost.
    pub fn take(&mut self, stream: &Stream, lookups: &Lookups<'_>) -> Result<Report, Error> {
        let Some(batch) = self.pending.filter(|pending| pending.is(lookups)) else {
            return Err(Error::Unsupported {
                what: "taking a batch that was not prefetched".into(),
                remedy: "call `prefetch` with these lookups before",
            });
        };
        self.planned.synchronize()?;
        self.pending = None;
        let [wanted, hits, evicted, written, bad, first, overflows, worst] =
            std::array::from_fn(|at| self.seen[at]);
        if overflows > 0 {
            return Err(self.overflow(stream, lookups, [wanted, overflows, worst])?);
        }
        let found = [bad, if bad == 0 { u64::MAX } else { !first }, u64::MAX];
        let report = explain(found, stream, &self.views, lookups, self.bounds)?;
        stream.wait(&self.ready)?;
        stream.record(&self.taken)?;
        self.translated[batch.place].hand_over(&self.stream, stream);
        lookups.hand_over(&self.stream, stream);
        self.current = Some(batch);
        self.statistics.add(wanted, hits, evicted, written);
        Ok(report)
    }

    /// The optimizer, if [`RowCache::train`] made one.
    pub fn optimizer_mut(&mut self) -> Option<&mut RowOptimizer> {
        self.optimizer.as_mut()
    }

    /// Statistics of the batches taken so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The row in each slot of a table, after all requested rows have arrived.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    pub fn cached_rows(&self, table: usize) -> Result<Vec<Option<u32>>, Error> {
        let before: usize = self.sets[..table].iter().map(|sets| sets.slots()).sum();
        let mut rows = vec![0; self.sets[table].slots()];
        self.rows.as_ref().slice(before..before + rows.len()).read(&self.stream, &mut rows)?;
        Ok(rows.into_iter().map(|row| (row != policy::NO_ROW).then_some(row)).collect())
    }

    /// Launch geometry of its kernels.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self) -> Result<Vec<Geometry>, Error> {
        let grids = Grids::new(&self.sets, self.sizes.lookups, self.stream.device().multiprocessors());
        let busy = self.hosts.iter().map(|table| Plane::new(0, 0, table.pitch()).busy());
        self.kernels.geometry(&grids, busy.fold(1.0, f64::min))
    }
}

impl Drop for RowCache {
    fn drop(&mut self) {
        // Rows may still be moving to memory that is about to be freed. After a failed kernel there is nothing to wait
        // for.
        let _ = self.stream.synchronize();
    }
}
