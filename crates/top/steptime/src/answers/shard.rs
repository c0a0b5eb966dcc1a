//! Where the tables of a model lie, and how long its job's step takes then.

use serde::Serialize;
use steptime_eager::{Cutting, Home};

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
        TablePlaced { table, rows: size.rows, columns: size.columns, lookups: size.lookups, cut, gpus }
    })
    .collect()
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
