//! Where the tables of a model lie, and how long its job's step takes then.

use serde::Serialize;
use steptime_eager::{Cutting, Home, Model};

use super::job::PredictedJob;
use super::shared::{SCHEMA, ms};
use crate::shard::{Placement, Regret, SPREAD, SPREAD_FROM, Sharded};

/// The tables of a model on the GPUs of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placed {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `shard`.
    pub command: &'static str,
    /// How the plan was found; none where it was given.
    pub found_by: Option<&'static str>,
    /// No plan is shorter, by the loads of its tables as far as these add up in the plans simulated, milliseconds; none where that is
    /// not known.
    pub bound_ms: Option<f64>,
    /// How many changes simulations made to it then.
    pub changes: usize,
    /// How many plans were simulated; none where it was given.
    pub simulated: usize,
    /// What it may cost to take it; none where no bound is known.
    pub regret: Option<RegretSaid>,
    /// In how many machines the GPUs are; none where that is not said.
    pub nodes: Option<u32>,
    /// Other plans that were simulated, but for those that are a change away.
    pub others: Vec<OtherPlan>,
    /// What lies on each GPU: one of those that have the same to do.
    pub gpus: Vec<OnGpu>,
    /// Where each table lies.
    pub tables: Vec<TablePlaced>,
    /// What the host of each node has of tables, MB (a million bytes); empty where tables lie on GPUs alone.
    pub hosts_mb: Vec<f64>,
    /// The step.
    pub predicted: PredictedJob,
}

/// How much shorter than the step with the pick another may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RegretSaid {
    /// What a plan at the bound is expected to save, as a share of the step: of any other plan it is less.
    pub expected: f64,
    /// How much shorter the bound is, as a share of the step.
    pub above_bound: f64,
    /// How far differences of plans are from the predicted ones: standard deviation of the logarithm of a step.
    pub spread: f64,
    /// Where that is from.
    pub spread_from: &'static str,
}

/// A plan that was simulated and is not the best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OtherPlan {
    /// How it was found.
    pub found_by: &'static str,
    /// Its step, milliseconds.
    pub step_ms: f64,
}

/// What lies on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnGpu {
    /// Its number.
    pub gpu: u32,
    /// How many GPUs have as much to do, this one among them.
    pub alike: u32,
    /// Tables, or parts of them, that lie on it alone.
    pub tables: Vec<usize>,
    /// The most memory that its step needs, MB (a million bytes); none where that is not known.
    pub peak_mb: Option<f64>,
    /// Its step if no other GPU kept it waiting, milliseconds.
    pub alone_ms: f64,
    /// Its device at work, milliseconds.
    pub computes_ms: f64,
    /// How long it waits for other GPUs, milliseconds.
    pub waits_ms: f64,
}

/// Where a table lies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TablePlaced {
    /// Its number.
    pub table: usize,
    /// Its rows.
    pub rows: i64,
    /// Elements of a row.
    pub columns: i64,
    /// Lookups a sample.
    pub lookups: i64,
    /// `whole`, `columns`, `rows`, `grid` (rows over some GPUs, perhaps of groups of columns) or `copies`.
    pub cut: &'static str,
    /// The GPUs; none listed of copies, which are on all.
    pub gpus: Vec<u32>,
    /// The caches behind which it lies in hosts' memory; none where GPUs have all its rows.
    pub cached: Option<CachedTable>,
}

/// A table in hosts' memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachedTable {
    /// How many of its rows all its caches together hold, ...
    pub rows: i64,
    /// ... as a share of those that its parts have.
    pub share: f64,
    /// How many rows a step brings from hosts, as computed from the distribution of indices; as many go back.
    pub misses: i64,
    /// What its weights and the optimizer's state take of hosts' memory, MB (a million bytes).
    pub host_mb: f64,
}

impl Placed {
    /// A plan that was given.
    #[must_use]
    pub fn of(placement: &Placement) -> Placed {
        Placed {
            schema: SCHEMA,
            command: "shard",
            found_by: None,
            bound_ms: None,
            changes: 0,
            simulated: 0,
            regret: None,
            nodes: placement.model.nodes(),
            others: Vec::new(),
            gpus: gpus(placement),
            tables: tables(placement),
            hosts_mb: hosts(&placement.model),
            predicted: PredictedJob::of(&placement.ranks, &placement.predicted),
        }
    }

    /// A plan that was found.
    #[must_use]
    pub fn found(sharded: &Sharded) -> Placed {
        let other = |&(found_by, step)| OtherPlan { found_by, step_ms: ms(step) };
        Placed {
            found_by: Some(sharded.how),
            bound_ms: sharded.bound.map(ms),
            changes: sharded.changes,
            simulated: sharded.simulated,
            regret: sharded.regret.map(RegretSaid::new),
            others: sharded.others.iter().map(other).collect(),
            ..Placed::of(&sharded.best)
        }
    }
}

impl RegretSaid {
    fn new(regret: Regret) -> RegretSaid {
        RegretSaid {
            expected: regret.expected,
            above_bound: regret.above_bound,
            spread: SPREAD,
            spread_from: SPREAD_FROM,
        }
    }
}

fn tables(placement: &Placement) -> Vec<TablePlaced> {
    let all = placement.model.tables().into_iter().zip(placement.model.homes()).enumerate();
    all.map(|(table, (size, home))| {
        let cut = match home.cutting(placement.model.gpus()) {
            Cutting::Copies => "copies",
            Cutting::Whole => "whole",
            Cutting::Columns => "columns",
            Cutting::Rows => "rows",
            Cutting::Grid => "grid",
        };
        let gpus = match &home {
            Home::Everywhere => Vec::new(),
            Home::Parts(parts) => parts.iter().map(|part| part.gpu).collect(),
        };
        let cached = cached(&placement.model, &home);
        TablePlaced {
            table,
            rows: size.rows,
            columns: size.columns,
            lookups: size.lookups,
            cut,
            gpus,
            cached,
        }
    })
    .collect()
}

fn cached(model: &Model, home: &Home) -> Option<CachedTable> {
    let all: Vec<_> = home.caches().collect();
    let [own, rows, misses] = all.iter().fold([0; 3], |[own, rows, misses], (part, cache)| {
        [own + part.size[0], rows + cache.rows, misses + cache.misses]
    });
    let bytes: u64 = all.iter().map(|(part, _)| model.kept_bytes(part.size[0], part.size[1])).sum();
    let share = rows as f64 / (own as f64).max(1.0);
    (!all.is_empty()).then_some(CachedTable { rows, share, misses, host_mb: bytes as f64 / 1e6 })
}

/// What each node's host has of tables, MB; none where tables lie on GPUs alone.
fn hosts(model: &Model) -> Vec<f64> {
    let node = model.nodes().map_or(model.gpus(), |nodes| model.gpus() / nodes.max(1)).max(1);
    let mut hosts = vec![0.0; model.gpus().div_ceil(node) as usize];
    for home in model.homes() {
        for (part, _) in home.caches() {
            hosts[(part.gpu / node) as usize] += model.kept_bytes(part.size[0], part.size[1]) as f64 / 1e6;
        }
    }
    if hosts.iter().all(|mb| *mb == 0.0) { Vec::new() } else { hosts }
}

fn gpus(placement: &Placement) -> Vec<OnGpu> {
    let homes = placement.model.homes();
    let has = |home: &Home, gpu: u32| match home {
        Home::Everywhere => false,
        Home::Parts(parts) => parts.iter().any(|part| part.gpu == gpu),
    };
    let ranks = placement.ranks.steps.iter().zip(&placement.ranks.alike).zip(&placement.predicted.ranks);
    ranks
        .map(|((step, &alike), rank)| {
            let gpu = step.rank.unwrap_or(0);
            OnGpu {
                gpu,
                alike,
                tables: (0..homes.len()).filter(|&at| has(&homes[at], gpu)).collect(),
                peak_mb: rank.peak.as_ref().map(|peak| peak.total() as f64 / 1e6),
                alone_ms: ms(rank.alone),
                computes_ms: ms(rank.parts.computes),
                waits_ms: ms(rank.parts.waits),
            }
        })
        .collect()
}
