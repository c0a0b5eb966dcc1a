//! Load of each table on the rank where it is placed, from steps with almost nothing else.
//!
//! A step with one small table is priced, and steps with that and another table: the difference is the load of the other table, including its
//! copies, labels, exchange and update. The base load of the model is the step of its first rank minus the loads of the tables
//! there.

use std::collections::BTreeMap;

use rayon::prelude::*;
use steptime_cost::network::{CollectiveCall, Topology};
use steptime_eager::{Cache, Model, Sharding, TableLayout, TableShard, TableSize};
use steptime_graph::CollectiveKind;
use steptime_shard::{Load, Problem, Table};
use steptime_trace::{Bytes, Nanos};

use super::table_ways::{Key, Size, TableWay, cached, cut, over, ways, whole};
use super::{SearchConstraints, described, on};
use crate::error::Error;
use crate::input;
use crate::query::QueryFor;
use crate::step::{Choice, Step};

/// Share of the average GPU load above which a table may be split.
const LARGE: f64 = 0.25;

/// Loads of a model's tables for each of their possible placements.
pub(super) fn problem<A: QueryFor>(
    model: &Model,
    wanted: &SearchConstraints<'_>,
    queries: &A,
) -> Result<Problem, A::Error> {
    let tables = model.tables();
    let small = tables.iter().min_by_key(|size| (size.rows * size.columns, size.lookups)).copied();
    let Some(small) = small else { return Err(A::Error::from(Error::NoTiming { path: wanted.path.into() })) };
    let topology = super::topology(wanted)?;
    let node = topology.gpus.min(wanted.gpus);
    let alone = first_rank_load(model, wanted, &[small], &[(TableWay::Whole, None)], node, queries)?;
    let measure = |(size, beside, cache): Key| {
        let (rows, columns, lookups) = size;
        let both = [small, TableSize { rows, columns, lookups }];
        let load = first_rank_load(
            model,
            wanted,
            &both,
            &[(TableWay::Whole, None), (beside, cache)],
            node,
            queries,
        )? - alone;
        let [least, host_memory] = memory(model, size, over(beside, wanted.gpus, node), cache);
        // An optimizer that updates all rows of a table needs more memory temporarily than it keeps.
        let memory = least.max(load.memory);
        let moved = matches!(beside, TableWay::Whole | TableWay::Node);
        let columns = if moved { columns as u64 } else { 0 };
        Ok(((size, beside, cache), Load { memory, host_memory, columns, ..positive(load) }))
    };
    let measured = |keys: Vec<Key>| -> Result<BTreeMap<Key, Load>, A::Error> {
        distinct(keys).into_par_iter().map(measure).collect()
    };
    let mut loads = measured(tables.iter().map(whole).collect())?;
    let mut others: Vec<Key> =
        large(&tables, wanted, &loads).flat_map(|size| cut(size, wanted.gpus, node)).collect();
    let own = |key: &Key| cached(key, model.batch(), wanted, node);
    let behind: Vec<Key> =
        tables.iter().map(whole).chain(others.iter().copied()).flat_map(|key| own(&key)).collect();
    others.extend(behind);
    loads.extend(measured(others)?);
    let all: Vec<Table> =
        tables.iter().map(|size| Table { ways: ways(size, model.batch(), wanted, node, &loads) }).collect();
    let (gpus, memory) = (wanted.gpus, wanted.memory);
    let host_memory = wanted.host_memory.unwrap_or_default();
    let exchange = exchange(model, &tables, gpus, &topology);
    let mut problem =
        Problem { gpus, node, memory, host_memory, base: Load::default(), exchange, tables: all };
    problem.base = base_load(model, wanted, &loads, queries)?;
    Ok(problem)
}

fn distinct(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The tables that may be split. A table that is small compared with the average GPU load stays whole, because other placements only cost more.
fn large<'t>(
    tables: &'t [TableSize],
    wanted: &SearchConstraints<'_>,
    loads: &BTreeMap<Key, Load>,
) -> impl Iterator<Item = &'t TableSize> {
    let of = |size: &TableSize| loads.get(&whole(size)).copied().unwrap_or_default();
    let all: Load = tables.iter().map(of).sum();
    let (gpus, memory) = (f64::from(wanted.gpus), wanted.memory.0 as f64);
    let is_large = move |own: Load| {
        let share = |part: f64, sum: f64| part * gpus > LARGE * sum;
        share(own.host.0 as f64, all.host.0 as f64)
            || share(own.device.0 as f64, all.device.0 as f64)
            || share(own.memory.0 as f64, all.memory.0 as f64)
            || own.memory.0 as f64 > LARGE * memory
    };
    let found: Vec<&TableSize> = tables.iter().filter(|size| is_large(of(size))).collect();
    found.into_iter()
}

/// Load on the first rank of tables with these placements.
fn first_rank_load<A: QueryFor>(
    model: &Model,
    wanted: &SearchConstraints<'_>,
    tables: &[TableSize],
    lie: &[(TableWay, Option<Cache>)],
    node: u32,
    queries: &A,
) -> Result<Load, A::Error> {
    let alone = model.tables_alone(tables).map_err(|source| described(wanted.path, source))?;
    let home = |(size, (beside, cache)): (&TableSize, &(TableWay, Option<Cache>))| {
        let home = match beside {
            TableWay::Whole => TableLayout::whole(0, size.rows, size.columns),
            TableWay::Rows => TableLayout::by_rows(wanted.gpus, size.rows, size.columns),
            TableWay::Node => TableLayout::by_grid(&[(0..node).collect()], size.rows, size.columns),
            TableWay::Copies => TableLayout::Everywhere,
        };
        home.cached(|_| *cache)
    };
    let placed = on(&alone, wanted, Some(tables.iter().zip(lie).map(home).collect()))?;
    priced(&first_rank(&placed, wanted)?, queries)
}

/// The step of a model's first rank.
fn first_rank(model: &Model, wanted: &SearchConstraints<'_>) -> Result<Step, Error> {
    let input = input::described(wanted.path, model, &[0]);
    Step::from_recordings(wanted.path, &input.recordings, &Choice::default())
}

/// Host and device time of a step without exchanges between ranks, and its peak memory.
fn priced<A: QueryFor>(step: &Step, queries: &A) -> Result<Load, A::Error> {
    let sides = queries.query(step)?.sides()?;
    let exchanged = |at: steptime_graph::ActivityId| {
        let own = step.graph.activities[at].collective.map(|own| step.graph.collectives[own].kind);
        own == Some(CollectiveKind::AllToAll)
    };
    let device =
        sides.durations.iter_enumerated().filter(|(at, _)| !exchanged(*at)).map(|(_, time)| *time).sum();
    let memory = Bytes(sides.peak.map_or(0, |peak| peak.total()));
    Ok(Load { host: sides.host.gaps.iter().copied().sum(), device, memory, ..Load::default() })
}

/// Load on the first rank besides its tables.
fn base_load<A: QueryFor>(
    model: &Model,
    wanted: &SearchConstraints<'_>,
    loads: &BTreeMap<Key, Load>,
    queries: &A,
) -> Result<Load, A::Error> {
    let turns = on(model, wanted, None)?;
    let step = first_rank(&turns, wanted)?;
    let mut left = priced(&step, queries)?;
    for (home, size) in turns.homes().iter().zip(model.tables()) {
        let key = |columns: i64, beside| loads.get(&((size.rows, columns, size.lookups), beside, None));
        let of_first =
            |parts: &[TableShard]| parts.iter().find(|part| part.gpu == 0).map(|part| part.size[1]);
        let own = match (home, home.cutting(wanted.gpus)) {
            (_, Sharding::Copies) => key(size.columns, TableWay::Copies),
            (_, Sharding::Rows) => key(size.columns, TableWay::Rows),
            (TableLayout::Parts(parts), Sharding::Grid) => {
                of_first(parts).and_then(|width| key(width, TableWay::Node))
            }
            (TableLayout::Parts(parts), _) => of_first(parts).and_then(|width| key(width, TableWay::Whole)),
            (TableLayout::Everywhere, _) => None,
        };
        left -= own.copied().unwrap_or_default();
    }
    Ok(Load { columns: 0, ..positive(left) })
}

fn positive(load: Load) -> Load {
    Load { host: load.host.max(Nanos::ZERO), device: load.device.max(Nanos::ZERO), ..load }
}

/// Memory of a table, or of one of `over` parts of its rows: the GPU's, and the host's.
fn memory(model: &Model, (rows, columns, lookups): Size, over: u32, cache: Option<Cache>) -> [Bytes; 2] {
    let rows = (rows + i64::from(over) - 1) / i64::from(over);
    let held = cache.map_or(rows, |cache| cache.rows);
    let host = if cache.is_some() { model.kept_bytes(rows, columns) } else { 0 };
    [Bytes(model.table_bytes(&TableSize { rows: held, columns, lookups })), Bytes(host)]
}

/// Time that one column of the rank with the most columns adds to both exchanges.
fn exchange(model: &Model, tables: &[TableSize], gpus: u32, topology: &Topology) -> Nanos {
    let columns: i64 = tables.iter().map(|size| size.columns).sum();
    let columns = (columns / i64::from(gpus)).max(1) as u64;
    let time = |columns: u64| {
        let bytes = Bytes(model.batch() * columns * 4);
        topology.in_step(&CollectiveCall { kind: CollectiveKind::AllToAll, ranks: gpus, bytes }).time
    };
    let more = time(2 * columns) - time(columns);
    Nanos(2 * more.0 / i64::try_from(columns).unwrap_or(1))
}
