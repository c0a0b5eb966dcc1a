//! Jobs as CSV.

use serde_json::json;
use steptime_answers::{JobPredictionReport, JobValidationReport, PlannerValidationReport};

use crate::report::csv::Table;

/// Returns the ranks and collectives of a predicted job: a row for each rank, and one for each rank of a collective.
pub fn predicted(answer: &JobPredictionReport) -> Table {
    let columns =
        "table rank name=op bytes computes_ms moves_ms waits_ms idles_ms hidden_ms alone_ms critical_ms last";
    let mut table = Table::new(columns);
    for rank in &answer.ranks {
        table.row_with(&json!({"table": "rank"}), rank);
    }
    for met in &answer.collectives {
        for (rank, waits) in met.what.ranks.iter().zip(&met.waits_ms) {
            let last = usize::from(met.last == *rank);
            table.row_with(
                &json!({"table": "collective", "rank": rank, "waits_ms": waits, "last": last}),
                met,
            );
        }
    }
    table
}

/// Returns measured and predicted jobs.
pub fn validated(answer: &JobValidationReport) -> Table {
    let columns = "job=name ranks measured_ms predicted_ms error low_ms=interval_ms/0 high_ms=interval_ms/1 slowest_alone_ms \
                   first_rank_ms replay_error";
    Table::from_rows(columns, &answer.jobs)
}

/// Returns jobs as measured, as predicted from their descriptions, and as estimated by a planner.
pub fn planned(answer: &PlannerValidationReport) -> Table {
    let columns = "job=name model ranks measured_ms described_ms described_error planned_ms planned_error";
    Table::from_rows(columns, &answer.jobs)
}
