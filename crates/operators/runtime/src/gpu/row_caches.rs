//! The row caches of a program: tables in host memory, of which the device holds the rows of recent batches.
//!
//! The rows of a batch are requested when its inputs are sent, while the step before still runs, and taken when its own step starts.

use steptime_cuda::cache::{Access, CachedTable, Contents, HostTable, Policy, RowCache, Statistics};
use steptime_cuda::embedding::{Ints, Lookups, Sizes};
use steptime_cuda::{Staging, Stream};
use steptime_ops::embedding::{Bounds, Element};

use crate::error::Error;
use crate::places::MemoryId;
use crate::row_cache_plan::RowCachePlan;

/// Use of the states by a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateAccess {
    Read,
    Change,
}

/// Row caches by number.
#[derive(Debug)]
pub(crate) struct RowCaches {
    all: Vec<(RowCachePlan, RowCache)>,
    /// Use of the rows that were requested and not taken.
    requested: Option<Access>,
}

impl RowCaches {
    /// Empty caches of tables of zeros.
    pub(crate) fn new(stream: &Stream, plans: &[RowCachePlan]) -> Result<RowCaches, Error> {
        let all = plans.iter().map(|plan| Ok::<_, Error>((plan.clone(), open(stream, plan)?)));
        Ok(RowCaches { all: all.collect::<Result<_, _>>()?, requested: None })
    }

    /// A cache by its number, which the program has chosen.
    pub(crate) fn cache(&mut self, at: usize) -> &mut RowCache {
        &mut self.all[at].1
    }

    /// Starts to copy the rows of the inputs that were sent last, beside the step that runs in `stream`.
    pub(crate) fn request(&mut self, stream: &Stream, inputs: &Staging, access: Access) -> Result<(), Error> {
        if self.requested.is_some() {
            // The batch before was dropped: its step did not start.
            let _ = self.take(stream, inputs);
        }
        for (plan, cache) in &mut self.all {
            cache.prefetch_beside(stream, inputs.stream(), &lookups(plan, inputs)?, access)?;
        }
        self.requested = Some(access);
        Ok(())
    }

    /// Makes later work in `stream` wait for the rows that were requested. Rows that do not fit beside those of the step before are copied after
    /// that step.
    pub(crate) fn take(&mut self, stream: &Stream, inputs: &Staging) -> Result<(), Error> {
        let Some(access) = self.requested.take() else { return Ok(()) };
        let mut taken = Ok(());
        for (plan, cache) in &mut self.all {
            let lookups = lookups(plan, inputs)?;
            let mut own = cache.take(stream, &lookups).map(|_| ());
            if own.is_err() && cache.is_in_use() {
                cache.finish();
                own = cache.prefetch_beside(stream, inputs.stream(), &lookups, access);
                own = own.and_then(|()| cache.take(stream, &lookups).map(|_| ()));
            }
            taken = taken.and(own);
        }
        taken.map_err(|error| match error {
            steptime_cuda::Error::Unsupported { .. } => Error::RowCache(error),
            other => other.into(),
        })
    }

    /// Number of the combination of buffers with the slots of the batches in use: captured launches of one run for all batches with the same.
    pub(crate) fn buffers(&self) -> u64 {
        self.all.iter().fold(0, |number, (_, cache)| number << 1 | cache.buffer() as u64)
    }

    /// Copies elements of a table from position `start` on.
    pub(crate) fn read(
        &mut self,
        stream: &Stream,
        memory: MemoryId,
        start: usize,
        to: &mut [f32],
    ) -> Result<(), Error> {
        let Some((cache, at)) = self.find(memory) else { return Ok(()) };
        let table = &cache.flush(stream)?.tables[at];
        for (place, range) in rows(table.dim(), start, to.len()) {
            let bytes = &table.row(place[0])[4 * place[1]..][..4 * range.len()];
            bytemuck::cast_slice_mut(&mut to[range]).copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Replaces elements of a table from position `start` on.
    pub(crate) fn write(
        &mut self,
        stream: &Stream,
        memory: MemoryId,
        start: usize,
        from: &[f32],
    ) -> Result<(), Error> {
        let Some((cache, at)) = self.find(memory) else { return Ok(()) };
        let table = &mut cache.forget(stream)?.tables[at];
        for (place, range) in rows(table.dim(), start, from.len()) {
            let bytes = &mut table.row_mut(place[0])[4 * place[1]..][..4 * range.len()];
            bytes.copy_from_slice(bytemuck::cast_slice(&from[range]));
        }
        Ok(())
    }

    /// The optimizer states of all rows of a table, by the numbers of cache and table.
    pub(crate) fn states(
        &mut self,
        stream: &Stream,
        [cache, table]: [usize; 2],
        access: StateAccess,
    ) -> Result<&mut [f32], Error> {
        let cache = self.cache(cache);
        let Contents { states, .. } = match access {
            StateAccess::Read => cache.flush(stream)?,
            StateAccess::Change => cache.forget(stream)?,
        };
        Ok(states.get_mut(table).map_or(&mut [], |state| &mut state[..]))
    }

    /// Counts of all caches together; `None` without a cache.
    pub(crate) fn statistics(&self) -> Option<Statistics> {
        let each = self.all.iter().map(|(_, cache)| cache.statistics());
        each.reduce(|sum, one| Statistics {
            batches: sum.batches.max(one.batches),
            wanted: sum.wanted + one.wanted,
            hits: sum.hits + one.hits,
            evicted: sum.evicted + one.evicted,
            written: sum.written + one.written,
        })
    }

    fn find(&mut self, memory: MemoryId) -> Option<(&mut RowCache, usize)> {
        self.all.iter_mut().find_map(|(plan, cache)| {
            let at = plan.tables.iter().position(|table| table.memory == memory)?;
            Some((cache, at))
        })
    }
}

/// An empty cache of tables of zeros.
fn open(stream: &Stream, plan: &RowCachePlan) -> Result<RowCache, Error> {
    let mut tables = Vec::with_capacity(plan.tables.len());
    for one in &plan.tables {
        let table = HostTable::zeros(stream.device(), &one.name, one.shape, Element::F32)?;
        tables.push(CachedTable { table, pooling: plan.pooling, slots: one.slots });
    }
    let sizes = Sizes {
        bags: plan.bags,
        lookups: plan.indices.len() / 8,
        index_width: 8,
        offset_width: 8,
        weighted: false,
        stride: 0,
    };
    Ok(RowCache::new(stream, tables, Policy::Lru, Bounds::Error, sizes)?)
}

/// The lookups of a cache among the inputs that were sent.
fn lookups<'a>(plan: &RowCachePlan, inputs: &'a Staging) -> Result<Lookups<'a>, Error> {
    let ints = |bytes: &std::ops::Range<usize>| Ints::I64(inputs.sent().slice(bytes.clone()).cast());
    Ok(Lookups::new(plan.bags, ints(&plan.indices), ints(&plan.offsets))?)
}

/// Row, first column and range of each row's part of `len` elements from position `start` on.
fn rows(
    columns: usize,
    start: usize,
    len: usize,
) -> impl Iterator<Item = ([usize; 2], std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let place = [(start + at) / columns, (start + at) % columns];
        let next = len.min(at + columns - place[1]);
        let range = at..next;
        at = next;
        (!range.is_empty()).then_some((place, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_parts_of_rows() {
        let all: Vec<_> = rows(5, 3, 9).collect();
        assert_eq!(all, [([0, 3], 0..2), ([1, 0], 2..7), ([2, 0], 7..9)]);
        assert_eq!(rows(4, 8, 0).count(), 0);
    }
}
