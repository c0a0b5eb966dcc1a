//! Tables in host memory, of which a GPU caches rows: their choice in a program, before it runs.

use std::collections::BTreeMap;

use steptime_cuda::cache::Sets;
use steptime_ops::embedding::{Element, Pooling};

use crate::arg::Arg;
use crate::error::Error;
use crate::gpu::{GpuWork, RowStates, TableUse};
use crate::kept::{Kept, KeptKind};
use crate::kernel::Kernel;
use crate::places::MemoryId;
use crate::program::{Instruction, Program};
use crate::row_cache_plan::{CachedRows, RowCachePlan};
use crate::slices::Region;

/// A table whose rows a GPU can cache: only lookups of `steptime::embedding_bag` and their updates use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheableTable {
    /// Name of the parameter.
    pub name: String,
    /// Number of rows and of columns.
    pub shape: [usize; 2],
    /// Number of lookups of a step.
    pub lookups: usize,
    /// Number of floats of a row's optimizer state.
    pub state: usize,
    /// Number of its call. The tables of a call are cached together: those without a chosen size with all their rows.
    pub call: usize,
}

impl CacheableTable {
    /// Bytes of a row and of its optimizer state.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        let state = if self.state == 0 { 0 } else { Element::F32.pitch(self.state) };
        Element::F32.pitch(self.shape[1]) + state
    }

    /// Bytes of all rows and of their optimizer states.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shape[0].saturating_mul(self.row_bytes())
    }

    /// Bytes on the device for a cache of `slots` rows.
    ///
    /// # Panics
    /// The table has more than 2^31 rows.
    #[must_use]
    pub fn cache_bytes(&self, slots: usize) -> usize {
        Sets::new(self.shape[0], slots).device_bytes(self.row_bytes())
    }

    /// Number of rows of a cache in which every batch fits beside the batch before, however its lookups are distributed.
    #[must_use]
    pub fn sufficient_slots(&self) -> usize {
        // The rows of two batches, in sets that are not filled evenly.
        self.lookups.saturating_mul(6).min(self.shape[0])
    }
}

/// A use of the same tables by the same lookups: a forward call, and its update.
struct SharedLookups {
    /// Numbers of the instructions.
    instructions: Vec<usize>,
    names: Vec<String>,
    tables: Vec<MemoryId>,
    indices: InputPlace,
    offsets: InputPlace,
    pooling: Pooling,
    bags: usize,
}

/// Memory, first element and number of elements of an operand.
type InputPlace = (MemoryId, usize, usize);

impl Program {
    /// The tables that can be in host memory; none of a program for a CPU.
    #[must_use]
    pub fn cacheable_tables(&self) -> Vec<CacheableTable> {
        let mut all = Vec::new();
        for (call, group) in self.shared_lookups().into_iter().enumerate() {
            let counts = self.lookup_counts(&group);
            for ((at, name), &memory) in group.names.iter().enumerate().zip(&group.tables) {
                let Some(shape) = self.table(memory).and_then(shape_of) else { continue };
                let (name, state) = (name.clone(), self.state_floats(&group, name));
                let lookups = counts.get(at).copied().unwrap_or(group.indices.2);
                all.push(CacheableTable { name, shape, lookups, state, call });
            }
        }
        all
    }

    /// Moves tables to host memory, each with the number of rows that the device caches. The other tables of their calls move with them, and are
    /// cached as a whole.
    ///
    /// # Errors
    /// Where a table cannot be cached.
    pub fn with_row_caches(mut self, slots: &BTreeMap<String, usize>) -> Result<Program, Error> {
        let groups = self.shared_lookups();
        let known: Vec<&String> = groups.iter().flat_map(|group| &group.names).collect();
        if let Some(name) = slots.keys().find(|name| !known.contains(name)) {
            let known = known.into_iter().cloned().collect::<Vec<_>>().join(", ");
            return Err(Error::Name { what: "table that can be cached", name: name.clone(), known });
        }
        let chosen = |group: &SharedLookups| group.names.iter().any(|name| slots.contains_key(name));
        for group in groups.into_iter().filter(chosen) {
            let rows = |(name, &memory): (&String, &MemoryId)| {
                let shape = self.table(memory).and_then(shape_of)?;
                let slots = slots.get(name).copied().unwrap_or(shape[0]);
                Some(CachedRows { name: name.clone(), memory, shape, slots })
            };
            let tables = group.names.iter().zip(&group.tables).filter_map(rows).collect();
            let bytes = |(memory, start, len): InputPlace| {
                let start = self.plan.piece(memory).start + 8 * start;
                start..start + 8 * len
            };
            let (indices, offsets) = (bytes(group.indices), bytes(group.offsets));
            let (pooling, bags) = (group.pooling, group.bags);
            let number = self.row_caches.len();
            self.row_caches.push(RowCachePlan { tables, pooling, bags, indices, offsets });
            for at in group.instructions {
                if let Kernel::Gpu(work) = &mut self.instructions[at].kernel {
                    work.use_cache(number);
                }
            }
        }
        let moved: Vec<MemoryId> =
            self.row_caches.iter().flat_map(|cache| &cache.tables).map(|table| table.memory).collect();
        self.plan.move_to_host(&moved);
        let plan = &self.plan;
        self.instructions.iter_mut().for_each(|instruction| instruction.place(plan));
        Ok(self)
    }

    /// Bytes of the tables and of their states in host memory, and of their rows on the device.
    #[must_use]
    pub fn row_cache_bytes(&self) -> [usize; 2] {
        let all = self.cacheable_tables();
        let cached = self.row_caches.iter().flat_map(|cache| &cache.tables);
        cached.fold([0, 0], |[host, device], table| {
            let Some(sizes) = all.iter().find(|one| one.name == table.name) else { return [host, device] };
            [host + sizes.bytes(), device + sizes.cache_bytes(table.slots)]
        })
    }

    /// Calls whose tables no other instruction uses, and whose lookups are inputs.
    fn shared_lookups(&self) -> Vec<SharedLookups> {
        let mut all: Vec<SharedLookups> = Vec::new();
        for (at, instruction) in self.instructions.iter().enumerate() {
            let Some(used) = table_use(instruction) else { continue };
            let memory = |arg: &Arg| instruction.slots[arg.slot].0;
            let place = |arg: &Arg| (memory(arg), arg.layout.offset(), arg.len());
            let tables: Vec<MemoryId> = used.tables.iter().map(memory).collect();
            let (indices, offsets) = (place(used.indices), place(used.offsets));
            let same = |group: &&mut SharedLookups| {
                (&group.tables, group.indices, group.offsets) == (&tables, indices, offsets)
            };
            if let Some(group) = all.iter_mut().find(same) {
                group.instructions.push(at);
                continue;
            }
            let (names, pooling, bags) = (used.names.to_vec(), used.pooling, used.bags);
            all.push(SharedLookups {
                instructions: vec![at],
                names,
                tables,
                indices,
                offsets,
                pooling,
                bags,
            });
        }
        all.retain(|group| self.is_alone(group));
        all
    }

    /// Whether the tables of a call are parameters that only its own instructions use, each once, and its lookups are inputs.
    fn is_alone(&self, group: &SharedLookups) -> bool {
        let is_input = |(memory, ..): InputPlace| self.plan.piece(memory).region == Region::Inputs;
        let is_plain = |(at, &memory): (usize, &MemoryId)| {
            let once = !group.tables[..at].contains(&memory);
            let rows = self.table(memory).and_then(shape_of).map(|[rows, _]| rows);
            once && rows.is_some_and(|rows| rows > 0 && rows <= Sets::MOST_ROWS)
        };
        let others = self.instructions.iter().enumerate().filter(|(at, _)| !group.instructions.contains(at));
        let mut others = others.flat_map(|(_, instruction)| &instruction.slots);
        is_input(group.indices)
            && is_input(group.offsets)
            && group.tables.iter().enumerate().all(is_plain)
            && !others.any(|(memory, _)| group.tables.contains(memory))
    }

    /// The parameter that is the whole of some memory.
    fn table(&self, memory: MemoryId) -> Option<&Kept> {
        let mut own = self.kept.iter().filter(|kept| kept.memory == memory);
        let first = own.next().filter(|kept| kept.start == 0 && own.next().is_none());
        first.filter(|kept| matches!(kept.kind, KeptKind::Parameter(_)))
    }

    /// Number of lookups of each table, in order; empty where they are not the parts of one input.
    fn lookup_counts(&self, group: &SharedLookups) -> Vec<usize> {
        let mut parts: Vec<(usize, usize)> = self
            .inputs
            .values()
            .flatten()
            .filter(|part| part.memory == group.indices.0)
            .map(|part| (part.start, part.len))
            .collect();
        parts.sort_unstable();
        parts.dedup();
        if parts.len() == group.tables.len() {
            parts.into_iter().map(|(_, len)| len).collect()
        } else {
            Vec::new()
        }
    }

    /// Number of floats of the state of a row.
    fn state_floats(&self, group: &SharedLookups, table: &str) -> usize {
        let states = |at: &usize| match &self.instructions[*at].kernel {
            Kernel::Gpu(work) => work.rows().map_or_else(Vec::new, RowStates::states),
            _ => Vec::new(),
        };
        let mut all = group.instructions.iter().flat_map(states);
        all.find(|(name, _)| *name == table).map_or(0, |(_, floats)| floats)
    }
}

fn table_use(instruction: &Instruction) -> Option<TableUse<'_>> {
    match &instruction.kernel {
        Kernel::Gpu(work) => GpuWork::table_use(&**work),
        _ => None,
    }
}

fn shape_of(kept: &Kept) -> Option<[usize; 2]> {
    <[usize; 2]>::try_from(kept.shape.clone()).ok()
}
