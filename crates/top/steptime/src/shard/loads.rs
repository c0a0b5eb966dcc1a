//! What each table asks of the rank that it lies on, by steps of next to nothing else.
//!
//! A step of one small table is priced, and steps of that and another table: the difference is what the other asks for, its copies,
//! labels, exchange and update included. What the model asks for besides is the step of its first rank less what the tables there
//! ask for.

use std::collections::BTreeMap;

use rayon::prelude::*;
use steptime_cost::network::{CollectiveCall, Topology};
use steptime_eager::{Cutting, Home, Model, Part, TableSize};
use steptime_graph::CollectiveKind;
use steptime_shard::{Cut, Load, Problem, Table, Way};
use steptime_trace::{Bytes, Nanos};

use super::{Ask, Wanted, described, on};
use crate::error::Error;
use crate::input;
use crate::sources::Kernels;
use crate::step::{Choice, Step};

/// Columns are not cut into narrower groups than this.
const NARROWEST: i64 = 16;
/// Tables with more elements than this are not put on every GPU: their gradients would all be exchanged.
const MOST_COPIED: i64 = 1 << 20;
/// A table that asks for more than this share of what a GPU is asked for on average may be cut.
const LARGE: f64 = 0.25;

/// How one table lies beside the small one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    Whole,
    Rows,
    /// Its rows over the GPUs of a node, ...
    Node,
    Copies,
}

/// A table's size, ...
type Size = (i64, i64, i64);
/// ... and how it lies.
type Key = (Size, Beside);

/// The tables of a model with what each way of theirs asks for.
pub(super) fn problem<A: Ask>(model: &Model, wanted: &Wanted<'_>, ask: &A) -> Result<Problem, A::Error> {
    let tables = model.tables();
    let small = tables.iter().min_by_key(|size| (size.rows * size.columns, size.lookups)).copied();
    let Some(small) = small else { return Err(A::Error::from(Error::NoTiming { path: wanted.path.into() })) };
    let topology = super::topology(wanted)?;
    let node = topology.gpus.min(wanted.gpus);
    let alone = asks(model, wanted, &[small], &[Beside::Whole], node, ask)?;
    let measure = |(size, beside): Key| {
        let (rows, columns, lookups) = size;
        let both = [small, TableSize { rows, columns, lookups }];
        let load = asks(model, wanted, &both, &[Beside::Whole, beside], node, ask)? - alone;
        let memory = memory(model, size, over(beside, wanted.gpus, node));
        let moved = matches!(beside, Beside::Whole | Beside::Node);
        let columns = if moved { columns as u64 } else { 0 };
        Ok(((size, beside), Load { memory, columns, ..positive(load) }))
    };
    let measured = |keys: Vec<Key>| -> Result<BTreeMap<Key, Load>, A::Error> {
        distinct(keys).into_par_iter().map(measure).collect()
    };
    let mut loads = measured(tables.iter().map(whole).collect())?;
    let others = large(&tables, wanted, &loads).flat_map(|size| cut(size, wanted.gpus, node)).collect();
    loads.extend(measured(others)?);
    let all: Vec<Table> =
        tables.iter().map(|size| Table { ways: ways(size, wanted.gpus, node, &loads) }).collect();
    let (gpus, memory) = (wanted.gpus, wanted.memory);
    let exchange = exchange(model, &tables, gpus, &topology);
    let mut problem = Problem { gpus, node, memory, base: Load::default(), exchange, tables: all };
    problem.base = rest(model, wanted, &loads, ask)?;
    Ok(problem)
}

/// Each once.
fn distinct(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A whole table.
fn whole(size: &TableSize) -> Key {
    ((size.rows, size.columns, size.lookups), Beside::Whole)
}

/// The tables that may be cut: what is small beside what a GPU is asked for on average lies whole, other ways would only cost more.
fn large<'t>(
    tables: &'t [TableSize],
    wanted: &Wanted<'_>,
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

/// The other ways for a table to lie.
fn cut(size: &TableSize, gpus: u32, node: u32) -> Vec<Key> {
    let (rows, columns, lookups) = (size.rows, size.columns, size.lookups);
    let mut all = Vec::new();
    all.extend(groups(size, gpus).map(|parts| ((rows, widest(columns, parts), lookups), Beside::Whole)));
    if gpus > 1 {
        all.push(((rows, columns, lookups), Beside::Rows));
        all.extend(
            grids(size, gpus, node).map(|parts| ((rows, widest(columns, parts), lookups), Beside::Node)),
        );
        if rows.saturating_mul(columns) <= MOST_COPIED {
            all.push(((rows, columns, lookups), Beside::Copies));
        }
    }
    all
}

/// Into how many groups of columns a table may be cut.
fn groups(size: &TableSize, gpus: u32) -> impl Iterator<Item = u32> {
    let columns = size.columns;
    (1..6)
        .map(|power| 1 << power)
        .filter(move |&parts| parts <= gpus && columns / i64::from(parts) >= NARROWEST)
}

/// Into how many groups of columns a table may be cut whose rows then lie over the GPUs of a node each.
fn grids(size: &TableSize, gpus: u32, node: u32) -> impl Iterator<Item = u32> {
    let nodes = if node > 1 && gpus.is_multiple_of(node) { gpus / node } else { 1 };
    let rows = size.rows;
    let all = std::iter::once(1).chain(groups(size, gpus));
    all.filter(move |&parts| nodes > 1 && parts <= nodes && rows >= i64::from(node))
}

/// Over how many GPUs a way cuts rows.
fn over(beside: Beside, gpus: u32, node: u32) -> u32 {
    match beside {
        Beside::Whole | Beside::Copies => 1,
        Beside::Rows => gpus,
        Beside::Node => node,
    }
}

/// The widest of so many groups of columns.
fn widest(columns: i64, parts: u32) -> i64 {
    let Home::Parts(all) = Home::by_columns(&(0..parts).collect::<Vec<u32>>(), 1, columns) else {
        return columns;
    };
    all.iter().map(|part| part.size[1]).max().unwrap_or(columns)
}

fn ways(size: &TableSize, gpus: u32, node: u32, loads: &BTreeMap<Key, Load>) -> Vec<Way> {
    let (rows, columns, lookups) = (size.rows, size.columns, size.lookups);
    let load = |columns: i64, beside: Beside| loads.get(&((rows, columns, lookups), beside)).copied();
    let mut ways: Vec<Way> = load(columns, Beside::Whole).map(Way::whole).into_iter().collect();
    ways.extend(groups(size, gpus).filter_map(|parts| {
        let part = load(widest(columns, parts), Beside::Whole)?;
        Some(Way { cut: Cut::Columns(parts), parts: vec![part; parts as usize], each: Load::default() })
    }));
    ways.extend(grids(size, gpus, node).filter_map(|groups| {
        let part = load(widest(columns, groups), Beside::Node)?;
        let parts = vec![part; (groups * node) as usize];
        Some(Way { cut: Cut::Grid(groups), parts, each: Load::default() })
    }));
    for (cut, beside) in [(Cut::Rows, Beside::Rows), (Cut::Copies, Beside::Copies)] {
        ways.extend(load(columns, beside).map(|each| Way { cut, parts: Vec::new(), each }));
    }
    ways
}

/// What the first rank is asked for by tables of which each lies so.
fn asks<A: Ask>(
    model: &Model,
    wanted: &Wanted<'_>,
    tables: &[TableSize],
    lie: &[Beside],
    node: u32,
    ask: &A,
) -> Result<Load, A::Error> {
    let alone = model.tables_alone(tables).map_err(|source| described(wanted.path, source))?;
    let home = |(size, beside): (&TableSize, &Beside)| match beside {
        Beside::Whole => Home::whole(0, size.rows, size.columns),
        Beside::Rows => Home::by_rows(wanted.gpus, size.rows, size.columns),
        Beside::Node => Home::by_grid(&[(0..node).collect()], size.rows, size.columns),
        Beside::Copies => Home::Everywhere,
    };
    let placed = on(&alone, wanted, Some(tables.iter().zip(lie).map(home).collect()))?;
    priced(&first_rank(&placed, wanted)?, ask)
}

/// The step of a model's first rank.
fn first_rank(model: &Model, wanted: &Wanted<'_>) -> Result<Step, Error> {
    let input = input::described(wanted.path, model, &[0], true);
    Step::of_recordings(wanted.path, input.recordings, &Choice::default())
}

/// The host and device time of a step, what is exchanged between ranks left out.
fn priced<A: Ask>(step: &Step, ask: &A) -> Result<Load, A::Error> {
    let sides = ask.ask(step)?.sides()?;
    let exchanged = |at: steptime_graph::ActivityId| {
        let own = step.graph.activities[at].collective.map(|own| step.graph.collectives[own].kind);
        own == Some(CollectiveKind::AllToAll)
    };
    let device =
        sides.durations.iter_enumerated().filter(|(at, _)| !exchanged(*at)).map(|(_, time)| *time).sum();
    Ok(Load { host: sides.host.gaps.iter().copied().sum(), device, ..Load::default() })
}

/// What the first rank is asked for besides its tables.
fn rest<A: Ask>(
    model: &Model,
    wanted: &Wanted<'_>,
    loads: &BTreeMap<Key, Load>,
    ask: &A,
) -> Result<Load, A::Error> {
    let turns = on(model, wanted, None)?;
    let step = first_rank(&turns, wanted)?;
    let mut left = priced(&step, ask)?;
    let peak = crate::memory::of_recorded(&step, &Kernels::Measured).map_or(0, |peak| peak.total());
    left.memory = Bytes(peak);
    for (home, size) in turns.homes().iter().zip(model.tables()) {
        let key = |columns: i64, beside| loads.get(&((size.rows, columns, size.lookups), beside));
        let of_first = |parts: &[Part]| parts.iter().find(|part| part.gpu == 0).map(|part| part.size[1]);
        let own = match (home, home.cutting(wanted.gpus)) {
            (_, Cutting::Copies) => key(size.columns, Beside::Copies),
            (_, Cutting::Rows) => key(size.columns, Beside::Rows),
            (Home::Parts(parts), Cutting::Grid) => of_first(parts).and_then(|width| key(width, Beside::Node)),
            (Home::Parts(parts), _) => of_first(parts).and_then(|width| key(width, Beside::Whole)),
            (Home::Everywhere, _) => None,
        };
        left -= own.copied().unwrap_or_default();
    }
    Ok(Load { columns: 0, ..positive(left) })
}

fn positive(load: Load) -> Load {
    Load { host: load.host.max(Nanos::ZERO), device: load.device.max(Nanos::ZERO), ..load }
}

/// The memory of a table, or of one of so many parts of its rows.
fn memory(model: &Model, (rows, columns, lookups): Size, over: u32) -> Bytes {
    let rows = (rows + i64::from(over) - 1) / i64::from(over);
    Bytes(model.table_bytes(&TableSize { rows, columns, lookups }))
}

/// What a column of the rank with the most of them adds to both exchanges.
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
