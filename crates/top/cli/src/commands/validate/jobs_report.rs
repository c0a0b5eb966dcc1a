//! Measured and predicted jobs.

use steptime_answers::{JobValidationReport, validate::Errors};

use crate::report::csv::Table;
use crate::report::format::{counted, ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns the table of measured and predicted jobs.
pub fn text(answer: &JobValidationReport) -> String {
    let signed = |error: f64| format!("{:+.1}", 100.0 * error);
    let mut columns = Columns::new(&[
        "~job",
        ">ranks",
        ">measured",
        ">predicted",
        ">error",
        ">90 % interval",
        ">slowest alone",
        ">first rank",
        ">replay",
    ])
    .tight();
    for row in &answer.jobs {
        let [low, high] = row.interval_ms;
        columns.row([
            row.name.clone(),
            row.ranks.to_string(),
            ms(row.measured_ms),
            ms(row.predicted_ms),
            signed(row.error),
            format!("{low:.2}-{high:.2}{}", if row.inside { ' ' } else { '!' }),
            signed(row.slowest_alone_ms / row.measured_ms - 1.0),
            signed(row.first_rank_ms / row.measured_ms - 1.0),
            row.replay_error.map_or("-".into(), signed),
        ]);
    }
    let mut summary = Columns::new(&["method", ">GMAE", ">mean", ">90th", ">worst"]);
    let scores: [(&str, &Errors); 4] = [
        ("all ranks simulated", &answer.simulate),
        ("slowest rank alone", &answer.slowest_alone),
        ("first rank by itself", &answer.first_rank),
        ("replay", &answer.replay),
    ];
    for (method, errors) in scores {
        let row = [errors.gmae, errors.mean, errors.p90, errors.max].map(percent);
        let [gmae, mean, p90, max] = row;
        summary.row([method.to_owned(), gmae, mean, p90, max]);
    }
    let inside = answer.jobs.iter().filter(|row| row.inside).count();
    format!(
        "{}\n{}\n{}\n{}\nthe {:.0} % interval holds the measured step in {inside} of {}\n",
        counted(answer.jobs.len(), "job"),
        wrapped(
            "times in ms; error, slowest alone, first rank (its waiting counted as work) and replay: errors in %",
            prose(),
            2
        ),
        columns.text(),
        summary.text(),
        100.0 * answer.interval.level,
        answer.jobs.len(),
    )
}

/// Returns measured and predicted jobs.
pub fn csv(answer: &JobValidationReport) -> Table {
    let columns = "job=name ranks measured_ms predicted_ms error low_ms=interval_ms/0 high_ms=interval_ms/1 slowest_alone_ms \
                   first_rank_ms replay_error";
    Table::from_rows(columns, &answer.jobs)
}
