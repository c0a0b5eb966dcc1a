//! Placement of a model's tables, and the step time of its job.

use serde::Serialize;
use steptime_eager::{Model, Sharding, TableLayout};
use steptime_predict::shard::{Placement, Regret, ShardingResult};
use steptime_predict::uncertainty;

use super::job::JobPredictionReport;
use super::shared::{SCHEMA, ms};

/// The tables of a model on the GPUs of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `shard`.
    pub command: &'static str,
    /// Search method that found the plan; `None` where the plan was given.
    pub found_by: Option<&'static str>,
    /// Lower bound of the step over all plans, from the loads of tables that add up in the simulated plans, milliseconds; `None`
    /// where unknown.
    pub bound_ms: Option<f64>,
    /// Number of changes that simulations then made to the plan.
    pub changes: usize,
    /// Number of simulated plans; 0 where the plan was given.
    pub simulated: usize,
    /// Expected loss from taking this plan; `None` where no bound is known.
    pub regret: Option<RegretEntry>,
    /// Number of nodes; `None` where not given.
    pub nodes: Option<u32>,
    /// Other simulated plans, without those that differ by one change.
    pub others: Vec<OtherPlan>,
    /// Contents of each GPU: one of those with the same work.
    pub gpus: Vec<GpuContents>,
    /// Placement of each table.
    pub tables: Vec<PlacedTableEntry>,
    /// Memory of each node's host that tables use, MB (10^6 bytes); empty where all tables are on GPUs.
    pub hosts_mb: Vec<f64>,
    /// The predicted step.
    pub predicted: JobPredictionReport,
}

/// Possible saving of another plan over the chosen one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RegretEntry {
    /// Expected saving of a plan at the bound, as a share of the step; any other plan saves less.
    pub expected: f64,
    /// Distance of the step to the bound, as a share of the step.
    pub above_bound: f64,
    /// Error of predicted differences between plans: standard deviation of the logarithm of a step.
    pub spread: f64,
    /// Source of `spread`.
    pub spread_from: &'static str,
}

/// A plan that was simulated and is not the best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OtherPlan {
    /// Search method that found it.
    pub found_by: &'static str,
    /// Its step, milliseconds.
    pub step_ms: f64,
}

/// Contents of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuContents {
    /// Its number.
    pub gpu: u32,
    /// Number of GPUs with the same work, including this one.
    pub alike: u32,
    /// Tables of which this GPU has all or a part, without those that are copied to all GPUs.
    pub tables: Vec<usize>,
    /// Peak memory of its step, MB (10^6 bytes); `None` where unknown.
    pub peak_mb: Option<f64>,
    /// Its step if it never waited for another GPU, milliseconds.
    pub alone_ms: f64,
    /// Time in which its device computes, milliseconds.
    pub computes_ms: f64,
    /// Waiting time for other GPUs, milliseconds.
    pub waits_ms: f64,
}

/// Placement of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacedTableEntry {
    /// Its number.
    pub table: usize,
    /// Its rows.
    pub rows: i64,
    /// Elements of a row.
    pub columns: i64,
    /// Lookups per sample.
    pub lookups: i64,
    /// `whole`, `columns`, `rows`, `grid` (rows split over some GPUs, perhaps of groups of columns) or `copies`.
    pub cut: &'static str,
    /// The GPUs; empty for `copies`, which are on all.
    pub gpus: Vec<u32>,
    /// Its caches on GPUs, where its rows are in hosts' memory; `None` where GPUs hold all its rows.
    pub cached: Option<CachedTable>,
}

/// A table in hosts' memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachedTable {
    /// Number of rows that all its caches together hold.
    pub rows: i64,
    /// Cached rows as a share of the rows of its parts.
    pub share: f64,
    /// Rows copied from hosts per step, as computed from the distribution of indices; the same number is written back.
    pub misses: i64,
    /// Host memory of its weights and the optimizer's state, MB (10^6 bytes).
    pub host_mb: f64,
}

impl PlacementReport {
    /// Describes a given plan.
    #[must_use]
    pub fn from_placement(placement: &Placement) -> PlacementReport {
        PlacementReport {
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
            predicted: JobPredictionReport::new(&placement.ranks, &placement.predicted),
        }
    }

    /// Describes a plan that was found.
    #[must_use]
    pub fn found(sharded: &ShardingResult) -> PlacementReport {
        let other = |&(found_by, step)| OtherPlan { found_by, step_ms: ms(step) };
        PlacementReport {
            found_by: Some(sharded.how),
            bound_ms: sharded.bound.map(ms),
            changes: sharded.changes,
            simulated: sharded.simulated,
            regret: sharded.regret.map(RegretEntry::new),
            others: sharded.others.iter().map(other).collect(),
            ..PlacementReport::from_placement(&sharded.best)
        }
    }
}

impl RegretEntry {
    fn new(regret: Regret) -> RegretEntry {
        RegretEntry {
            expected: regret.expected,
            above_bound: regret.above_bound,
            spread: uncertainty().plans.difference.value,
            spread_from: &uncertainty().plans.difference.source,
        }
    }
}

fn tables(placement: &Placement) -> Vec<PlacedTableEntry> {
    let all = placement.model.tables().into_iter().zip(placement.model.homes()).enumerate();
    all.map(|(table, (size, home))| {
        let cut = match home.cutting(placement.model.gpus()) {
            Sharding::Copies => "copies",
            Sharding::Whole => "whole",
            Sharding::Columns => "columns",
            Sharding::Rows => "rows",
            Sharding::Grid => "grid",
        };
        let gpus = match &home {
            TableLayout::Everywhere => Vec::new(),
            TableLayout::Parts(parts) => parts.iter().map(|part| part.gpu).collect(),
        };
        let cached = cached(&placement.model, &home);
        PlacedTableEntry {
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

fn cached(model: &Model, home: &TableLayout) -> Option<CachedTable> {
    let all: Vec<_> = home.caches().collect();
    let [own, rows, misses] = all.iter().fold([0; 3], |[own, rows, misses], (part, cache)| {
        [own + part.size[0], rows + cache.rows, misses + cache.misses]
    });
    let bytes: u64 = all.iter().map(|(part, _)| model.kept_bytes(part.size[0], part.size[1])).sum();
    let share = rows as f64 / (own as f64).max(1.0);
    (!all.is_empty()).then_some(CachedTable { rows, share, misses, host_mb: bytes as f64 / 1e6 })
}

/// Memory of each node's host that tables use, MB; empty where all tables are on GPUs.
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

fn gpus(placement: &Placement) -> Vec<GpuContents> {
    let homes = placement.model.homes();
    let has = |home: &TableLayout, gpu: u32| match home {
        TableLayout::Everywhere => false,
        TableLayout::Parts(parts) => parts.iter().any(|part| part.gpu == gpu),
    };
    let ranks = placement.ranks.steps.iter().zip(&placement.ranks.alike).zip(&placement.predicted.ranks);
    ranks
        .map(|((step, &alike), rank)| {
            let gpu = step.rank.unwrap_or(0);
            GpuContents {
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
