//! Jobs: ranks, collectives, placements.

use steptime_answers::{
    CollectivePricesReport, JobPredictionReport, JobValidationReport, PlacementReport,
    PlannerValidationReport, ScaleReport,
};

use super::Table;

/// Ranks and collectives of a predicted job.
pub fn predicted_job(answer: &JobPredictionReport) -> Table {
    let names = [
        "table",
        "rank",
        "name",
        "bytes",
        "computes_ms",
        "moves_ms",
        "waits_ms",
        "idles_ms",
        "hidden_ms",
        "alone_ms",
        "critical_ms",
        "last",
    ];
    let mut table = Table::new(&names);
    let none: Option<f64> = None;
    for rank in &answer.ranks {
        let parts = &rank.parts;
        table.row((
            ("rank", rank.rank, "", None::<u64>),
            (parts.computes_ms, parts.moves_ms, parts.waits_ms, parts.idles_ms, parts.hidden_ms),
            (rank.alone_ms, rank.critical_ms, rank.last),
        ));
    }
    for met in &answer.collectives {
        for (rank, waits) in met.what.ranks.iter().zip(&met.waits_ms) {
            table.row((
                ("collective", rank, met.what.op, met.what.bytes),
                (none, met.moves_ms, waits, none, none),
                (none, none, usize::from(met.last == *rank)),
            ));
        }
    }
    table
}

/// Collectives, priced.
pub fn collectives(answer: &CollectivePricesReport) -> Table {
    let names =
        ["op", "ranks", "bytes", "time_us", "low_us", "high_us", "bus_gbs", "in_step_us", "measured_us"];
    let mut table = Table::new(&names);
    for row in &answer.rows {
        let [low, high] = row.interval_us;
        table.row((
            (row.op, row.ranks, row.bytes, row.time_us, low),
            (high, row.bus_gbs, row.in_step_us, row.measured_us),
        ));
    }
    table
}

/// Placements of tables.
pub fn placed(answer: &PlacementReport) -> Table {
    let mut table =
        Table::new(&["table", "rows", "columns", "lookups", "cut", "gpus", "cached_rows", "misses"]);
    for row in &answer.tables {
        let gpus: Vec<String> = row.gpus.iter().map(u32::to_string).collect();
        let (held, misses) = (row.cached.map(|own| own.rows), row.cached.map(|own| own.misses));
        let place = (row.table, row.rows, row.columns, row.lookups, row.cut, gpus.join(" "), held, misses);
        table.row(place);
    }
    table
}

/// A model on several numbers of GPUs.
pub fn scaled(answer: &ScaleReport) -> Table {
    let names = [
        "gpus",
        "nodes",
        "batch",
        "step_ms",
        "low_ms",
        "high_ms",
        "samples_per_s",
        "efficiency",
        "exposed_ms",
        "cost",
    ];
    let mut table = Table::new(&names);
    for row in &answer.rows {
        let [low, high] = row.interval_ms;
        table.row((
            (row.gpus, row.nodes, row.batch, row.step_ms, low, high),
            (row.samples_per_s, row.efficiency, row.exposed_ms, row.cost),
        ));
    }
    table
}

/// Jobs, measured, predicted from their descriptions, and estimated by a planner.
pub fn planned_jobs(answer: &PlannerValidationReport) -> Table {
    let names = [
        "job",
        "model",
        "ranks",
        "measured_ms",
        "described_ms",
        "described_error",
        "planned_ms",
        "planned_error",
    ];
    let mut table = Table::new(&names);
    for row in &answer.jobs {
        table.row((
            (&row.name, &row.model, row.ranks, row.measured_ms),
            (row.described_ms, row.described_error, row.planned_ms, row.planned_error),
        ));
    }
    table
}

/// Jobs, measured and predicted.
pub fn validated_jobs(answer: &JobValidationReport) -> Table {
    let names = [
        "job",
        "ranks",
        "measured_ms",
        "predicted_ms",
        "error",
        "low_ms",
        "high_ms",
        "slowest_alone_ms",
        "first_rank_ms",
        "replay_error",
    ];
    let mut table = Table::new(&names);
    for row in &answer.jobs {
        let [low, high] = row.interval_ms;
        table.row((
            (&row.name, row.ranks, row.measured_ms, row.predicted_ms, row.error),
            (low, high, row.slowest_alone_ms, row.first_rank_ms, row.replay_error),
        ));
    }
    table
}
