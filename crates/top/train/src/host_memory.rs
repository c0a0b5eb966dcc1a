//! Choice of the tables in host memory, and of the rows that the GPU caches.

use std::collections::BTreeMap;

use steptime_ops::limits::available_memory;
use steptime_runtime::{CacheableTable, Program};

use crate::Failure;
use crate::error::Error;
use crate::host_tables::{CacheSize, HostMemory, HostTable, HostTables};
use crate::plan::Plan;
use crate::processor::Processor;

/// Share of the free memory of the GPU that is left for the workspaces of kernels.
const RESERVED: f64 = 0.1;
/// Parts of a step's lookups in which the sizes of caches are chosen.
const PARTS: usize = 16;

/// Moves tables of a program to host memory, and notes them in its plan. The memory of the GPU and of the host is checked.
///
/// # Errors
/// On a CPU; where no table can be moved, or the tables do not fit.
pub fn place(
    plan: &mut Plan,
    program: Program,
    wanted: &HostTables,
    cache: Option<CacheSize>,
    processor: &Processor,
) -> Result<Program, Failure> {
    let Some(free) = processor.free_memory()? else {
        let reason = "--host-memory is for a GPU: use --device cuda, or leave it out";
        return Err(Error::Options(reason.to_owned()).into());
    };
    let memory = GpuMemory {
        free: (free as f64 * (1.0 - RESERVED)) as usize,
        step: plan.bytes_without_tables(&program),
        cache: cache.map(|CacheSize(gib)| (gib * f64::from(1 << 30)) as usize),
    };
    let tables = program.cacheable_tables();
    if tables.is_empty() {
        let why = plan.skipped.iter().find(|(rule, _)| *rule == "operators");
        let why = why.map_or_else(String::new, |(_, reason)| format!(" ({reason})"));
        let reason = format!(
            "--host-memory needs tables whose rows are updated by the rule `operators`, and this step has none{why}: use --plan best \
             and SGD or Adagrad, or leave --host-memory out"
        );
        return Err(Error::Options(reason).into());
    }
    let Some(slots) = memory.choose(&tables, wanted)? else { return Ok(program) };
    let program = program.with_row_caches(&slots)?;
    let [host, device] = program.row_cache_bytes().map(|bytes| bytes as u64);
    if let Some(available) = available_memory().filter(|available| host > *available) {
        return Err(Error::HostMemory { needed: host, available }.into());
    }
    let chosen = tables.iter().filter_map(|table| {
        let cached = slots.get(&table.name)?.to_owned();
        let (name, rows) = (table.name.clone(), table.shape[0]);
        Some(HostTable { name, rows, cached, lookups: table.lookups, row_bytes: table.row_bytes() })
    });
    let host = HostMemory { tables: chosen.collect(), host_bytes: host, device_bytes: device };
    plan.set_host(host, &program);
    Ok(program)
}

/// Memory of the GPU, in bytes.
#[derive(Debug, Clone, Copy)]
struct GpuMemory {
    free: usize,
    /// Memory of the step without the tables that can be cached.
    step: usize,
    /// Wanted size of all caches together; what is free where it is `None`.
    cache: Option<usize>,
}

impl GpuMemory {
    /// The tables in host memory, each with its number of cached rows; `None` where the step fits without.
    fn choose(
        &self,
        tables: &[CacheableTable],
        wanted: &HostTables,
    ) -> Result<Option<BTreeMap<String, usize>>, Error> {
        let chosen: Vec<&CacheableTable> = match wanted {
            HostTables::Auto => match self.largest(tables)? {
                chosen if chosen.is_empty() => return Ok(None),
                chosen => chosen,
            },
            HostTables::All => tables.iter().collect(),
            HostTables::Numbers(numbers) => {
                let by_number = |number: &usize| {
                    let own = |table: &&CacheableTable| table_number(&table.name) == Some(*number);
                    tables.iter().find(own).ok_or(Error::NoTable { number: *number, tables: tables.len() })
                };
                let mut numbers = numbers.clone();
                numbers.sort_unstable();
                numbers.dedup();
                numbers.iter().map(by_number).collect::<Result<_, _>>()?
            }
        };
        let others = self.step + bytes_beside(tables, &chosen);
        let left = self.free.saturating_sub(others);
        let size = self.cache.map_or(left, |cache| cache.min(left));
        let slots = shares(&chosen, size);
        let needed =
            others + chosen.iter().zip(&slots).map(|(table, &slots)| table.cache_bytes(slots)).sum::<usize>();
        if needed > self.free {
            return Err(Error::Cache { needed: needed as u64, available: self.free as u64 });
        }
        Ok(Some(chosen.iter().map(|table| table.name.clone()).zip(slots).collect()))
    }

    /// The largest tables, as many as have to leave the GPU so that the step fits with caches for any batch; none where it fits as it is.
    fn largest<'t>(&self, tables: &'t [CacheableTable]) -> Result<Vec<&'t CacheableTable>, Error> {
        let all: usize = tables.iter().map(CacheableTable::bytes).sum();
        let mut needed = self.step.saturating_add(all);
        let mut order: Vec<&CacheableTable> = tables.iter().collect();
        order.sort_by_key(|table| std::cmp::Reverse(table.bytes()));
        let mut order = order.into_iter().filter(|table| table.sufficient_slots() < table.shape[0]);
        let mut chosen: Vec<&CacheableTable> = Vec::new();
        while needed > self.free {
            let Some(next) = order.next() else {
                return Err(Error::Cache { needed: needed as u64, available: self.free as u64 });
            };
            chosen.push(next);
            let caches: usize = chosen.iter().map(|table| table.cache_bytes(table.sufficient_slots())).sum();
            needed = self.step + bytes_beside(tables, &chosen) + caches;
        }
        Ok(chosen)
    }
}

/// Bytes on the GPU of the tables that are not chosen: those of calls with a chosen one are cached as a whole.
fn bytes_beside(tables: &[CacheableTable], chosen: &[&CacheableTable]) -> usize {
    let bytes = |table: &CacheableTable| {
        let beside = chosen.iter().any(|one| one.call == table.call);
        if beside { table.cache_bytes(table.shape[0]) } else { table.bytes() }
    };
    tables.iter().filter(|table| !chosen.contains(table)).map(bytes).sum()
}

/// Number of cached rows of each table, the same multiple of its lookups, so that all caches together have at most `size` bytes.
fn shares(chosen: &[&CacheableTable], size: usize) -> Vec<usize> {
    let slots = |table: &CacheableTable, parts: usize| {
        (table.lookups.saturating_mul(parts) / PARTS).clamp(1, table.shape[0])
    };
    let bytes = |parts: usize| -> usize {
        chosen.iter().map(|table| table.cache_bytes(slots(table, parts))).fold(0, usize::saturating_add)
    };
    let most = chosen.iter().map(|table| (table.shape[0] / table.lookups.max(1) + 1) * PARTS).max();
    let (mut least, mut most) = (0, most.unwrap_or(0));
    while least < most {
        let middle = (least + most).div_ceil(2);
        if bytes(middle) <= size {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    chosen.iter().map(|table| slots(table, least)).collect()
}

/// Number of a table in the model, by the name of its parameter: `tables.3.weight`.
fn table_number(name: &str) -> Option<usize> {
    let (_, rest) = name.split_once("tables.")?;
    rest.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(number: usize, rows: usize, lookups: usize) -> CacheableTable {
        CacheableTable {
            name: format!("tables.{number}.weight"),
            shape: [rows, 16],
            lookups,
            state: 0,
            call: 0,
        }
    }

    fn tables() -> Vec<CacheableTable> {
        vec![table(0, 1_000_000, 100), table(1, 50_000, 200), table(2, 40, 100), table(3, 3_000_000, 100)]
    }

    fn cached(
        free: usize,
        cache: Option<usize>,
        wanted: &str,
    ) -> Result<Option<BTreeMap<String, usize>>, String> {
        let memory = GpuMemory { free, step: 1 << 20, cache };
        memory.choose(&tables(), &wanted.parse().expect("tables")).map_err(|error| error.to_string())
    }

    fn numbers(cached: &BTreeMap<String, usize>) -> Vec<usize> {
        cached.keys().filter_map(|name| table_number(name)).collect()
    }

    /// Bytes of a choice.
    fn bytes(slots: &BTreeMap<String, usize>) -> usize {
        let bytes = |table: &CacheableTable| {
            table.cache_bytes(slots.get(&table.name).copied().unwrap_or(table.shape[0]))
        };
        tables().iter().map(bytes).sum()
    }

    #[test]
    fn the_largest_tables_leave_the_gpu_until_the_step_fits() {
        assert_eq!(cached(300 << 20, None, "auto"), Ok(None));
        for (free, expected) in [(200, vec![3]), (100, vec![3]), (12, vec![0, 3]), (4, vec![0, 1, 3])] {
            let chosen = cached(free << 20, None, "auto").expect("a choice").expect("tables");
            assert_eq!(numbers(&chosen), expected, "{free} MiB");
            let used = bytes(&chosen) + (1 << 20);
            assert!(used <= free << 20, "{used} of {free} MiB: {chosen:?}");
            // Caches take what is free.
            assert!(used as f64 > 0.9 * f64::from(1 << 20) * free as f64, "{used} of {free} MiB: {chosen:?}");
        }
        let error = cached(1 << 20, None, "auto").expect_err("too small");
        assert!(error.contains("GB") && error.contains("--batch"), "{error}");
    }

    #[test]
    fn caches_have_the_given_size_and_the_same_multiple_of_lookups() {
        let chosen = cached(300 << 20, Some(1 << 20), "1,0,1").expect("a choice").expect("tables");
        assert_eq!(numbers(&chosen), [0, 1]);
        let [first, second] = [0, 1].map(|number| chosen[&format!("tables.{number}.weight")]);
        assert!(second.abs_diff(2 * first) <= 1, "{chosen:?}");
        let own: usize = [0, 1].map(|at| tables()[at].cache_bytes([first, second][at])).iter().sum();
        assert!(own <= 1 << 20 && own > 900_000, "{own}: {chosen:?}");
        // Small tables are cached as a whole.
        let all = cached(300 << 20, None, "all").expect("a choice").expect("tables");
        assert_eq!(all["tables.2.weight"], 40);
        assert_eq!(numbers(&all), [0, 1, 2, 3]);
        assert_eq!(table_number("user.tables.12.weight"), Some(12));
        let error = cached(300 << 20, None, "0,4").expect_err("no such table");
        assert!(error.contains('4') && error.contains("0 to 3"), "{error}");
    }
}
