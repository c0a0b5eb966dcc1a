//! Jobs as measured, predicted, and estimated by a planner.

use steptime_answers::PlannerValidationReport;

use crate::report::csv::Table;
use crate::report::format::{counted, ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns the table of jobs as measured, predicted, and estimated by a planner.
pub fn text(answer: &PlannerValidationReport) -> String {
    let signed = |error: f64| format!("{:+.1}", 100.0 * error);
    let heads =
        ["~job", ">ranks", ">measured ms", ">from its description", ">error %", ">TorchRec ms", ">error %"];
    let mut columns = Columns::new(&heads).tight();
    for row in &answer.jobs {
        columns.row([
            row.name.clone(),
            row.ranks.to_string(),
            ms(row.measured_ms),
            ms(row.described_ms),
            signed(row.described_error),
            ms(row.planned_ms),
            signed(row.planned_error),
        ]);
    }
    let mut summary = Columns::new(&["method", ">GMAE", ">mean", ">of pairs", ">in order", ">of one model"]);
    for (method, of) in [("described", &answer.described), ("TorchRec's planner", &answer.planned)] {
        summary.row([
            method.to_owned(),
            percent(of.errors.gmae),
            percent(of.errors.mean),
            percent(of.pair_spread),
            format!("{} of {}", of.in_order, of.pairs),
            format!("{} of {}", of.in_order_of_model, of.pairs_of_model),
        ]);
    }
    let legend = "times in ms, errors in %; described: predicted from a description; of pairs: error of the ratio of two jobs, without a \
                  factor that all share; in order: pairs of jobs in the measured order; TorchRec's planner estimates tables only, without \
                  dense layers and host";
    format!(
        "{}\n\n{}\n{}{}\n",
        counted(answer.jobs.len(), "job"),
        columns.text(),
        summary.text(),
        wrapped(legend, prose(), 2)
    )
}

/// Returns jobs as measured, as predicted from their descriptions, and as estimated by a planner.
pub fn csv(answer: &PlannerValidationReport) -> Table {
    let columns = "job=name model ranks measured_ms described_ms described_error planned_ms planned_error";
    Table::from_rows(columns, &answer.jobs)
}
