//! Placement of a described model's tables on the GPUs of a job, for a short step.
//!
//! The cost of each table to its rank is priced alone (`loads`), plans are searched over these loads, and the best few are simulated as
//! whole jobs: the shortest step wins. Then changes of it are simulated (`refine`). `regret` estimates the loss from the chosen plan.

mod cached;
mod file;
mod loads;
mod recorded;
mod refine;
mod regret;
mod table_ways;
pub mod torchrec;

use std::path::Path;

use rayon::prelude::*;
use steptime_cost::network::Topology;
use steptime_eager::{Cache, Model, Sharding, TableLayout};
use steptime_launch::Indices;
use steptime_shard::{Cut, Plan, Problem, TablePlacement, bound, search};
use steptime_trace::{Bytes, Nanos};

pub use self::cached::missing;
pub use self::file::{Format, PlanError, read_plan, read_plan_of, write_plan};
pub use self::recorded::RecordedJob;
pub use self::regret::Regret;
use crate::error::Error;
use crate::job::{JobPrediction, RankSet};
pub use crate::memory::usable;
use crate::query::QueryFor;

/// Number of GPUs above which round-robin placement is not simulated for comparison, and changes of a plan are not tried.
const COMPARED: u32 = 16;

/// A model on the GPUs of a job, with its predicted step.
#[derive(Debug)]
pub struct Placement {
    /// The model, with its tables placed.
    pub model: Model,
    /// Its ranks.
    pub ranks: RankSet,
    /// The predicted step.
    pub predicted: JobPrediction,
}

/// A plan that was found, with the other plans that were tried.
#[derive(Debug)]
pub struct ShardingResult {
    /// The best plan.
    pub best: Placement,
    /// Lower bound of the step over all plans, from the loads of tables as far as these add up in the simulated plans; `None` where
    /// unknown.
    pub bound: Option<Nanos>,
    /// The other simulated plans: search method and step time.
    pub others: Vec<(&'static str, Nanos)>,
    /// Search method that found the best plan.
    pub how: &'static str,
    /// Number of changes that simulations then made to it.
    pub changes: usize,
    /// Number of simulated plans.
    pub simulated: usize,
    /// Expected loss from taking it; `None` where no bound is known.
    pub regret: Option<Regret>,
}

/// Constraints of a search.
#[derive(Debug, Clone, Copy)]
pub struct SearchConstraints<'a> {
    /// Number of GPUs.
    pub gpus: u32,
    /// Name of the GPUs.
    pub device: &'a str,
    /// Memory of each GPU that a job may use.
    pub memory: Bytes,
    /// Memory of each node's host that tables of all its GPUs may use together; `None` where tables may not be in hosts' memory.
    pub host_memory: Option<Bytes>,
    /// Distribution of lookup indices, which determines the misses of caches of tables in hosts' memory.
    pub indices: &'a Indices,
    /// Number of nodes, with the same number of GPUs each; `None` for the usual number of GPUs per node.
    pub nodes: Option<u32>,
    /// The description's file.
    pub path: &'a Path,
}

/// Searches a placement of a model's tables. `queries` sets GPU and host.
///
/// # Errors
/// Fails where GPUs cannot share the batch, memory does not hold the tables, or a step cannot be predicted.
pub fn shard<A: QueryFor>(
    model: &Model,
    wanted: &SearchConstraints<'_>,
    queries: &A,
) -> Result<ShardingResult, A::Error> {
    let usual = topology(wanted)?.gpus.max(1);
    let in_several = wanted.gpus > usual && wanted.gpus.is_multiple_of(usual);
    let nodes = wanted.nodes.or_else(|| in_several.then(|| wanted.gpus / usual));
    let wanted = &SearchConstraints { nodes, ..*wanted };
    let turns = on(model, wanted, None)?;
    let problem = loads::problem(model, wanted, queries)?;
    let mut plans: Vec<(&'static str, Vec<TableLayout>)> = Vec::new();
    for (how, problem) in objectives(&problem) {
        let plan = search(&problem).map_err(|source| Error::Shard { path: wanted.path.into(), source })?;
        let homes = homes(model, wanted, &problem, &plan);
        if plans.iter().all(|(_, other)| *other != homes) {
            plans.push((how, homes));
        }
    }
    let placed = |homes: Vec<TableLayout>| place(on(model, wanted, Some(homes))?, wanted.path, queries);
    let simulate = |(how, homes)| Ok((how, placed(homes)?));
    let found: Result<Vec<(&'static str, Placement)>, A::Error> = plans.into_iter().map(simulate).collect();
    let mut found = found?;
    if wanted.gpus <= COMPARED && fits(&turns, &problem) {
        found.push(("one after the other", place(turns, wanted.path, queries)?));
    }
    found.sort_by_key(|(_, placement)| placement.predicted.step);
    // Plans with their simulated steps, which show how far loads add up.
    let known = |(_, placement): &(&'static str, Placement)| {
        Some((plan_of(&problem, &placement.model.homes(), wanted.gpus)?, placement.predicted.step))
    };
    let mut known: Vec<(Plan, Nanos)> = found.iter().filter_map(known).collect();
    let mut others: Vec<(&'static str, Nanos)> =
        found.iter().skip(1).map(|(how, placement)| (*how, placement.predicted.step)).collect();
    let mut simulated = found.len();
    let Some((how, mut best)) = found.into_iter().next() else {
        return Err(A::Error::from(Error::NoTiming { path: wanted.path.into() }));
    };
    let mut changes = 0;
    let start = plan_of(&problem, &best.model.homes(), wanted.gpus);
    if let Some(plan) = start.filter(|_| wanted.gpus > 1 && wanted.gpus <= COMPARED) {
        let refined = refine::refine(model, wanted, &problem, plan, queries)?;
        // The first one is the best plan itself.
        simulated += refined.steps.len() - 1;
        known.extend(refined.steps);
        if refined.changes > 0 {
            changes = refined.changes;
            others.insert(0, (how, best.predicted.step));
            best = placed(refined.homes)?;
        }
    }
    let bound = bound(&problem).map(|bound| as_far(bound, &problem, &known));
    let regret = bound.map(|bound| Regret::new(best.predicted.step, bound));
    Ok(ShardingResult { best, bound, others, how, changes, simulated, regret })
}

/// Scales a bound from loads by the smallest ratio of simulated step to cost over known plans, where that is below 1. The result is at most any of
/// their steps.
fn as_far(bound: Nanos, problem: &Problem, known: &[(Plan, Nanos)]) -> Nanos {
    let longer = |(plan, step): &(Plan, Nanos)| step.0 as f64 / (problem.cost(plan).0 as f64).max(1.0);
    let least = known.iter().map(longer).fold(1.0, f64::min);
    Nanos((bound.0 as f64 * least) as i64)
}

/// Predicts the step of a model with placed tables.
///
/// # Errors
/// Fails where a step cannot be predicted.
pub fn place<A: QueryFor>(model: Model, path: &Path, queries: &A) -> Result<Placement, A::Error> {
    let ranks = RankSet::from_model(path, &model)?;
    let predicted = ranks.predict_as(|step| queries.query(step))?;
    Ok(Placement { model, ranks, predicted })
}

/// The model on the GPUs of the search, with its tables placed.
fn on(
    model: &Model,
    wanted: &SearchConstraints<'_>,
    homes: Option<Vec<TableLayout>>,
) -> Result<Model, Error> {
    let placed = match homes {
        Some(homes) => model.on(wanted.gpus, homes),
        None => model.on_gpus(wanted.gpus),
    };
    let placed = placed.and_then(|placed| match wanted.nodes {
        Some(nodes) => placed.in_nodes(nodes),
        None => Ok(placed),
    });
    placed.map_err(|source| described(wanted.path, source))
}

/// Error of a changed description.
fn described(path: &Path, source: steptime_eager::Problem) -> Error {
    Error::Model(steptime_eager::Error::Description { path: path.into(), source })
}

/// Objectives of the search: the longer of host and device, the device alone where hosts keep up, and their sum where nothing
/// overlaps.
fn objectives(problem: &Problem) -> [(&'static str, Problem); 3] {
    let with = |change: fn(&mut steptime_shard::Load)| {
        let mut changed = problem.clone();
        let ways = changed.tables.iter_mut().flat_map(|table| &mut table.ways);
        let loads = ways.flat_map(|way| way.parts.iter_mut().chain([&mut way.each]));
        loads.chain([&mut changed.base]).for_each(change);
        changed
    };
    let device = with(|load| load.host = Nanos::ZERO);
    let both = with(|load| load.device += load.host);
    [("host and device", problem.clone()), ("device", device), ("host plus device", both)]
}

/// Placement of tables by a plan.
fn homes(model: &Model, wanted: &SearchConstraints<'_>, problem: &Problem, plan: &Plan) -> Vec<TableLayout> {
    let gpus = wanted.gpus;
    let all = model.tables().into_iter().zip(plan.tables.iter().zip(&problem.tables));
    let homes = all.map(|(size, (placed, table))| {
        let way = &table.ways[placed.way];
        let home = match way.cut {
            Cut::Copies => TableLayout::Everywhere,
            Cut::Rows => TableLayout::by_rows(gpus, size.rows, size.columns),
            Cut::Grid(_) => {
                let groups: Vec<Vec<u32>> =
                    placed.gpus.chunks(problem.node.max(1) as usize).map(<[u32]>::to_vec).collect();
                TableLayout::by_grid(&groups, size.rows, size.columns)
            }
            Cut::Whole | Cut::Columns(_) => match placed.gpus[..] {
                [gpu] => TableLayout::whole(gpu, size.rows, size.columns),
                _ => TableLayout::by_columns(&placed.gpus, size.rows, size.columns),
            },
        };
        let cache = |rows: u64| Cache { rows: i64::try_from(rows).unwrap_or(i64::MAX), misses: 0 };
        home.cached(|_| way.cached.map(cache))
    });
    missing(model, homes.collect(), wanted.indices)
}

/// The plan that gives this placement; `None` where it has a way that was not priced.
fn plan_of(problem: &Problem, homes: &[TableLayout], gpus: u32) -> Option<Plan> {
    let placed = |(table, home): (&steptime_shard::Table, &TableLayout)| {
        let on: Vec<u32> = match home {
            TableLayout::Everywhere => Vec::new(),
            TableLayout::Parts(parts) => parts.iter().map(|part| part.gpu).collect(),
        };
        let cutting = home.cutting(gpus);
        let fits = |cut: Cut| match cut {
            Cut::Whole => cutting == Sharding::Whole,
            Cut::Columns(parts) => cutting == Sharding::Columns && on.len() == parts as usize,
            Cut::Rows => cutting == Sharding::Rows,
            Cut::Grid(parts) => cutting == Sharding::Grid && on.len() == (parts * problem.node) as usize,
            Cut::Copies => cutting == Sharding::Copies,
        };
        let held = home.caches().next().map(|(_, cache)| cache.rows.unsigned_abs());
        let way = table.ways.iter().position(|way| fits(way.cut) && way.cached == held)?;
        let gpus = if table.ways[way].parts.is_empty() { Vec::new() } else { on };
        Some(TablePlacement { way, gpus })
    };
    let tables: Option<Vec<TablePlacement>> = problem.tables.iter().zip(homes).map(placed).collect();
    Some(Plan { tables: tables? })
}

/// Whether memory holds a model's tables as placed.
fn fits(model: &Model, problem: &Problem) -> bool {
    let mut taken = vec![0_u64; model.gpus() as usize];
    for (home, table) in model.homes().iter().zip(&problem.tables) {
        let TableLayout::Parts(parts) = home else { continue };
        let whole = table.ways.iter().flat_map(|way| &way.parts).map(|part| part.memory.0).max().unwrap_or(0);
        for part in parts {
            taken[part.gpu as usize] += whole / parts.len() as u64;
        }
    }
    taken.iter().all(|&bytes| bytes + problem.base.memory.0 <= problem.memory.0)
}

/// Interconnect of the GPUs of a job.
fn topology(wanted: &SearchConstraints<'_>) -> Result<Topology, Error> {
    let usual = Topology::find(wanted.device).map_err(|source| Error::Network { source })?;
    Ok(match wanted.nodes {
        Some(nodes) => usual.in_nodes_of(wanted.gpus / nodes.max(1)),
        None => usual,
    })
}

/// Predicts several models in parallel.
///
/// # Errors
/// Fails where one of them cannot be predicted.
pub fn each<A: QueryFor>(models: Vec<Model>, path: &Path, queries: &A) -> Result<Vec<Placement>, A::Error> {
    models.into_par_iter().map(|model| place(model, path, queries)).collect()
}
