//! Recordings replayed with the profiler's cost, as a table.

use steptime_answers::ReplayReport;

use crate::report::csv::Table;
use crate::report::format::{counted, ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns the answer as text.
pub fn text(answer: &ReplayReport) -> String {
    let mut columns = Columns::new(&[
        "~recording",
        ">steps",
        ">recorded",
        ">typical",
        ">error",
        ">each",
        ">active",
        "~said",
    ])
    .tight();
    for row in &answer.rows {
        let said =
            row.doubt.as_ref().map_or("", |doubt| if doubt.no_estimate { "refused" } else { doubt.kind });
        let Some(replay) = &row.replay else {
            let why = row.failed.as_deref().unwrap_or("nothing timed");
            let mut cells = vec![row.name.clone(), "-".into(), "-".into(), "-".into(), "-".into()];
            cells.extend(["-".into(), "-".into(), why.to_owned()]);
            columns.row(cells);
            continue;
        };
        columns.row([
            row.name.clone(),
            row.steps.to_string(),
            ms(replay.recorded_ms),
            ms(replay.typical_ms),
            signed(replay.error),
            signed(replay.each_error),
            signed(replay.active_error),
            said.to_owned(),
        ]);
    }
    let summary = &answer.summary;
    let head = format!(
        "{}, the profiler's cost left in; times in ms; error: of the typical step, each: of every step with its \
         own times, active: of device active time, in %",
        counted(summary.recordings, "recording")
    );
    let foot = format!(
        "{} of several steps: median error {}, {} within 1 %; {} beyond 5 %, of which {} without a warning",
        summary.several_steps,
        percent(summary.median),
        summary.within_1_percent,
        summary.beyond,
        summary.silent,
    );
    format!("{}\n\n{}\n{}\n", wrapped(&head, prose(), 2), columns.text(), wrapped(&foot, prose(), 2))
}

/// Returns the answer as CSV.
pub fn csv(answer: &ReplayReport) -> Table {
    let columns = "recording=name steps step_source recorded_ms typical_ms error each_error active_recorded_ms active_typical_ms \
                   active_error single_step doubt=doubt/kind failed";
    Table::from_rows(columns, &answer.rows)
}

fn signed(error: f64) -> String {
    if error.is_finite() { format!("{:+.1}", 100.0 * error) } else { "-".into() }
}
