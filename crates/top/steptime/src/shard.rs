//! Placing the tables of a described model on the GPUs of a job, so that its step is short.
//!
//! What each table costs its rank is priced alone (`loads`), plans are searched over these loads, and the best few are simulated as
//! whole jobs: the shortest step wins. Then changes of it are simulated (`refine`). What the pick may cost is told (`regret`).

mod cached;
mod file;
mod loads;
mod recorded;
mod refine;
mod regret;
pub mod torchrec;
mod ways;

use std::path::Path;

use rayon::prelude::*;
use steptime_cost::network::Topology;
use steptime_eager::{Cache, Cutting, Home, Model};
use steptime_launch::Indices;
use steptime_shard::{Cut, Placed, Plan, Problem, bound, search};
use steptime_trace::{Bytes, Nanos};

pub use self::cached::missing;
pub use self::file::{Format, PlanError, read_plan, read_plan_of, write_plan};
pub use self::recorded::RecordedJob;
pub use self::regret::{Regret, SPREAD, SPREAD_FROM};
use crate::ask::Question;
use crate::error::Error;
use crate::job::{JobPrediction, Ranks};
pub use crate::memory::usable;
use crate::step::Step;

/// Of a job with more GPUs than this, tables one after the other are not simulated to compare with, and no changes of a plan.
const COMPARED: u32 = 16;

/// How each step is to be predicted: on which GPU, by whose host.
pub trait Ask: Sync {
    /// Why one cannot be.
    type Error: From<Error> + Send;

    /// Asks about a step.
    ///
    /// # Errors
    /// Where it cannot be asked so.
    fn ask<'s>(&self, step: &'s Step) -> Result<Question<'s>, Self::Error>;
}

/// A model on the GPUs of a job, and how long its step takes.
#[derive(Debug)]
pub struct Placement {
    /// The model, its tables where the plan says.
    pub model: Model,
    /// Its ranks.
    pub ranks: Ranks,
    /// Their step.
    pub predicted: JobPrediction,
}

/// A plan that was found, and what else was tried.
#[derive(Debug)]
pub struct Sharded {
    /// The best.
    pub best: Placement,
    /// The least step of any plan, by loads of tables, as far as these add up in the plans that were simulated; `None` where that is not
    /// known.
    pub bound: Option<Nanos>,
    /// The step with each other plan that was simulated: how it was found, and how long it takes.
    pub others: Vec<(&'static str, Nanos)>,
    /// How the best was found.
    pub how: &'static str,
    /// How many changes simulations made to it then.
    pub changes: usize,
    /// How many plans were simulated.
    pub simulated: usize,
    /// What it may cost to take it; `None` where no bound is known.
    pub regret: Option<Regret>,
}

/// What is asked of a search.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// How many GPUs.
    pub gpus: u32,
    /// What they are called.
    pub device: &'a str,
    /// Memory of each that a job may use.
    pub memory: Bytes,
    /// Memory of each machine's host that tables may take, those of all its GPUs together; none where they may not lie there.
    pub host_memory: Option<Bytes>,
    /// How the indices of lookups are distributed: by this caches of tables in hosts' memory miss.
    pub indices: &'a Indices,
    /// In how many machines they are, as many in each; where it is not said, in as many as such GPUs usually are.
    pub nodes: Option<u32>,
    /// The description's file.
    pub path: &'a Path,
}

/// Finds where the tables of a model should lie. `ask` says which GPU and whose host.
///
/// # Errors
/// Where GPUs cannot share the batch, memory does not hold the tables, or a step cannot be predicted so.
pub fn shard<A: Ask>(model: &Model, wanted: &Wanted<'_>, ask: &A) -> Result<Sharded, A::Error> {
    let usual = topology(wanted)?.gpus.max(1);
    let in_several = wanted.gpus > usual && wanted.gpus.is_multiple_of(usual);
    let nodes = wanted.nodes.or_else(|| in_several.then(|| wanted.gpus / usual));
    let wanted = &Wanted { nodes, ..*wanted };
    let turns = on(model, wanted, None)?;
    let problem = loads::problem(model, wanted, ask)?;
    let mut plans: Vec<(&'static str, Vec<Home>)> = Vec::new();
    for (how, problem) in objectives(&problem) {
        let plan = search(&problem).map_err(|source| Error::Shard { path: wanted.path.into(), source })?;
        let homes = homes(model, wanted, &problem, &plan);
        if plans.iter().all(|(_, other)| *other != homes) {
            plans.push((how, homes));
        }
    }
    let placed = |homes: Vec<Home>| place(on(model, wanted, Some(homes))?, wanted.path, ask);
    let simulate = |(how, homes)| Ok((how, placed(homes)?));
    let found: Result<Vec<(&'static str, Placement)>, A::Error> = plans.into_iter().map(simulate).collect();
    let mut found = found?;
    if wanted.gpus <= COMPARED && fits(&turns, &problem) {
        found.push(("one after the other", place(turns, wanted.path, ask)?));
    }
    found.sort_by_key(|(_, placement)| placement.predicted.step);
    // Plans with their simulated steps: how far loads add up.
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
        let refined = refine::refine(model, wanted, &problem, plan, ask)?;
        // The first is the best again.
        simulated += refined.steps.len() - 1;
        known.extend(refined.steps);
        if refined.changes > 0 {
            changes = refined.changes;
            others.insert(0, (how, best.predicted.step));
            best = placed(refined.homes)?;
        }
    }
    let bound = bound(&problem).map(|bound| as_far(bound, &problem, &known));
    let regret = bound.map(|bound| Regret::of(best.predicted.step, bound));
    Ok(Sharded { best, bound, others, how, changes, simulated, regret })
}

/// A bound by loads, where these are longer than the simulated step of a plan made shorter as much: it is no longer than any of them.
fn as_far(bound: Nanos, problem: &Problem, known: &[(Plan, Nanos)]) -> Nanos {
    let longer = |(plan, step): &(Plan, Nanos)| step.0 as f64 / (problem.cost(plan).0 as f64).max(1.0);
    let least = known.iter().map(longer).fold(1.0, f64::min);
    Nanos((bound.0 as f64 * least) as i64)
}

/// Predicts the step of a model whose tables are placed.
///
/// # Errors
/// Where a step cannot be predicted so.
pub fn place<A: Ask>(model: Model, path: &Path, ask: &A) -> Result<Placement, A::Error> {
    let ranks = Ranks::of_model(path, &model)?;
    let predicted = ranks.predict_as(|step| ask.ask(step))?;
    Ok(Placement { model, ranks, predicted })
}

/// The model on the GPUs wanted, its tables there.
fn on(model: &Model, wanted: &Wanted<'_>, homes: Option<Vec<Home>>) -> Result<Model, Error> {
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

/// What is wrong with a description of which something was changed.
fn described(path: &Path, source: steptime_eager::Problem) -> Error {
    Error::Model(steptime_eager::Error::Description { path: path.into(), source })
}

/// What is made small: the longer of host and device, the device alone where hosts keep up, both one after the other where nothing
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

/// Where a plan puts tables.
fn homes(model: &Model, wanted: &Wanted<'_>, problem: &Problem, plan: &Plan) -> Vec<Home> {
    let gpus = wanted.gpus;
    let all = model.tables().into_iter().zip(plan.tables.iter().zip(&problem.tables));
    let homes = all.map(|(size, (placed, table))| {
        let way = &table.ways[placed.way];
        let home = match way.cut {
            Cut::Copies => Home::Everywhere,
            Cut::Rows => Home::by_rows(gpus, size.rows, size.columns),
            Cut::Grid(_) => {
                let groups: Vec<Vec<u32>> =
                    placed.gpus.chunks(problem.node.max(1) as usize).map(<[u32]>::to_vec).collect();
                Home::by_grid(&groups, size.rows, size.columns)
            }
            Cut::Whole | Cut::Columns(_) => match placed.gpus[..] {
                [gpu] => Home::whole(gpu, size.rows, size.columns),
                _ => Home::by_columns(&placed.gpus, size.rows, size.columns),
            },
        };
        let cache = |rows: u64| Cache { rows: i64::try_from(rows).unwrap_or(i64::MAX), misses: 0 };
        home.cached(|_| way.cached.map(cache))
    });
    missing(model, homes.collect(), wanted.indices)
}

/// The plan by which tables lie there; `None` where it is in none of the ways that were priced.
fn plan_of(problem: &Problem, homes: &[Home], gpus: u32) -> Option<Plan> {
    let placed = |(table, home): (&steptime_shard::Table, &Home)| {
        let on: Vec<u32> = match home {
            Home::Everywhere => Vec::new(),
            Home::Parts(parts) => parts.iter().map(|part| part.gpu).collect(),
        };
        let cutting = home.cutting(gpus);
        let fits = |cut: Cut| match cut {
            Cut::Whole => cutting == Cutting::Whole,
            Cut::Columns(parts) => cutting == Cutting::Columns && on.len() == parts as usize,
            Cut::Rows => cutting == Cutting::Rows,
            Cut::Grid(parts) => cutting == Cutting::Grid && on.len() == (parts * problem.node) as usize,
            Cut::Copies => cutting == Cutting::Copies,
        };
        let held = home.caches().next().map(|(_, cache)| cache.rows.unsigned_abs());
        let way = table.ways.iter().position(|way| fits(way.cut) && way.cached == held)?;
        let gpus = if table.ways[way].parts.is_empty() { Vec::new() } else { on };
        Some(Placed { way, gpus })
    };
    let tables: Option<Vec<Placed>> = problem.tables.iter().zip(homes).map(placed).collect();
    Some(Plan { tables: tables? })
}

/// Whether memory holds a model's tables where they are.
fn fits(model: &Model, problem: &Problem) -> bool {
    let mut taken = vec![0_u64; model.gpus() as usize];
    for (home, table) in model.homes().iter().zip(&problem.tables) {
        let Home::Parts(parts) = home else { continue };
        let whole = table.ways.iter().flat_map(|way| &way.parts).map(|part| part.memory.0).max().unwrap_or(0);
        for part in parts {
            taken[part.gpu as usize] += whole / parts.len() as u64;
        }
    }
    taken.iter().all(|&bytes| bytes + problem.base.memory.0 <= problem.memory.0)
}

/// How the GPUs of a job are joined.
fn topology(wanted: &Wanted<'_>) -> Result<Topology, Error> {
    let usual = Topology::of(wanted.device).map_err(|source| Error::Network { source })?;
    Ok(match wanted.nodes {
        Some(nodes) => usual.in_nodes_of(wanted.gpus / nodes.max(1)),
        None => usual,
    })
}

/// The simulations of several models side by side.
///
/// # Errors
/// Where one of them cannot be predicted so.
pub fn each<A: Ask>(models: Vec<Model>, path: &Path, ask: &A) -> Result<Vec<Placement>, A::Error> {
    models.into_par_iter().map(|model| place(model, path, ask)).collect()
}
