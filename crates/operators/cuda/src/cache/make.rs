//! Parts of a cache: memory for slots, bookkeeping, states on the host.

use steptime_ops::embedding::{Bounds, Pooling};

use super::kernels::{Kernels, lay_out};
use super::{CachedTable, HostTable, Policy, RowCache, Sets, Statistics, WAYS};
use crate::embedding::{Grouping, RowOptimizer, RowSettings, Sizes, Table, Tables};
use crate::{Buffer, Error, Event, Pinned, Slice, Stream};

impl RowCache {
    /// An empty cache for batches of at most `sizes.lookups` lookups; `sizes.stride` is ignored.
    ///
    /// # Errors
    ///
    /// No tables, or an invalid one; not enough memory; no compiler; a GPU older than Ampere.
    pub fn new(
        stream: &Stream,
        tables: Vec<CachedTable>,
        policy: Policy,
        bounds: Bounds,
        sizes: Sizes,
    ) -> Result<RowCache, Error> {
        let device = stream.device();
        if tables.is_empty() || sizes.lookups > i32::MAX as usize {
            return Err(Error::Unsupported {
                what: format!("a cache of {} tables for {} lookups", tables.len(), sizes.lookups),
                remedy: "give at least one table, and batches of fewer than 2^31 lookups",
            });
        }
        let (views, slots, sets) = places_of(stream, &tables)?;
        let (entries, all, words) = lay_out(&sets);
        let side = device.stream()?;
        let zeros = |len| Buffer::<u32>::zeros(&side, len);
        let mut rows = zeros(all * WAYS)?;
        rows.as_mut().fill_bytes(&side, 0xff)?;
        let translated = || Buffer::uninit(device, sizes.lookups);
        let event = || Event::new(device);
        let cache = RowCache {
            hosts: tables.into_iter().map(|table| table.table).collect(),
            views,
            slots,
            optimizer: None,
            states: Vec::new(),
            sizes,
            bounds,
            sets,
            kernels: Kernels::new(device, policy, &sizes)?,
            device_entries: Buffer::zeros(&side, entries.len())?,
            entries,
            placed: false,
            rows,
            stamps: zeros(all * WAYS)?,
            uses: zeros(all * WAYS)?,
            leaving: zeros(all * WAYS)?,
            moved: zeros(all)?,
            wanted: zeros(words)?,
            counts: Buffer::zeros(&side, 8)?,
            seen: Pinned::zeros(device, 8)?,
            translated: [translated()?, translated()?],
            stream: side.clone(),
            before: event()?,
            taken: event()?,
            planned: event()?,
            ready: event()?,
            number: 0,
            pending: None,
            current: None,
            statistics: Statistics::default(),
        };
        stream.synchronize()?;
        Ok(cache)
    }

    /// Makes an optimizer for the cached tables, with zeros as the state of every row. States are stored on the host
    /// and move with the rows. Cached rows are written back first.
    ///
    /// # Errors
    ///
    /// Those of `RowOptimizer::new`; not enough memory to pin.
    pub fn train(
        &mut self,
        stream: &Stream,
        grouping: &Grouping,
        sizes: Sizes,
        settings: RowSettings,
    ) -> Result<(), Error> {
        self.forget(stream)?;
        let optimizer = RowOptimizer::new(stream, &self.slots, grouping, sizes, settings)?;
        let pinned = |(at, table): (usize, &HostTable)| {
            let (_, pitch) = optimizer.state(at);
            Pinned::zeros(stream.device(), table.rows().saturating_mul(pitch))
        };
        self.states = self.hosts.iter().enumerate().map(pinned).collect::<Result<_, _>>()?;
        self.optimizer = Some(optimizer);
        Ok(())
    }
}

/// The host tables by name and shape, their slots on the device, and the partition of the slots into sets.
fn places_of(
    stream: &Stream,
    tables: &[CachedTable],
) -> Result<(Tables<'static>, Tables<'static>, Vec<Sets>), Error> {
    let (mut views, mut slots, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for cached in tables {
        views.push(view_of(&cached.table)?);
        let (of_table, held) = slots_of(stream, cached)?;
        slots.push(held);
        sets.push(of_table);
    }
    let (mut views, mut slots) = (Tables::new(views, Pooling::Sum), Tables::new(slots, Pooling::Sum));
    for (at, table) in tables.iter().enumerate() {
        views = views.with_pooling(at, table.pooling)?;
        slots = slots.with_pooling(at, table.pooling)?;
    }
    Ok((views, slots, sets))
}

/// A view of a host table with its name and shape. Its data is not read.
fn view_of(table: &HostTable) -> Result<Table<'static>, Error> {
    // SAFETY: nothing is read through the view: it only carries the table's shape and name.
    let seen = unsafe { table.bytes().on_device() };
    // SAFETY: as above.
    let seen = unsafe { Slice::<u8>::from_raw(seen.address(), seen.len()) };
    Table::borrow(table.name(), seen, [table.rows(), table.dim()], table.element(), table.pitch())
}

/// The sets of a table, and device memory for their rows.
fn slots_of(stream: &Stream, cached: &CachedTable) -> Result<(Sets, Table<'static>), Error> {
    let CachedTable { table, slots: wanted, .. } = cached;
    if table.rows() > Sets::MOST_ROWS {
        return Err(Error::Unsupported {
            what: format!("a cache of table {:?} of {} rows", table.name(), table.rows()),
            remedy: "a cache counts at most 2^31 rows: cut the table in two",
        });
    }
    let sets = Sets::new(table.rows(), *wanted);
    if sets.slots() > i32::MAX as usize {
        return Err(Error::Unsupported {
            what: format!("a cache of {wanted} slots for table {:?}", table.name()),
            remedy: "give it fewer than 2^31 slots",
        });
    }
    let bytes = Buffer::zeros(stream, sets.slots().saturating_mul(table.pitch()))?;
    let shape = [sets.slots(), table.dim()];
    Ok((sets, Table::own(table.name(), bytes, shape, table.element(), table.pitch())?))
}
