//! Recordings replayed with the profiler's cost left in, as a table.

use super::format::{counted, ms, percent, shorten};
use super::json_replay::Answer;
use super::table::Columns;

/// The answer as text.
pub fn text(answer: &Answer) -> String {
    let mut columns =
        Columns::new(&["recording", ">steps", ">recorded", ">typical", ">error", ">each", ">active", "said"])
            .tight();
    for row in &answer.rows {
        let said =
            row.doubt.as_ref().map_or("", |doubt| if doubt.no_estimate { "refused" } else { doubt.kind });
        let Some(replay) = &row.replay else {
            let why = row.failed.as_deref().unwrap_or("nothing timed");
            let mut cells = vec![shorten(&row.name, 44), "-".into(), "-".into(), "-".into(), "-".into()];
            cells.extend(["-".into(), "-".into(), shorten(why, 60)]);
            columns.row(cells);
            continue;
        };
        columns.row([
            shorten(&row.name, 44),
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
    format!(
        "{}, the profiler's cost left in; times in ms; error: of the typical step, each: of every step with its \
         own times, active: of device active time, in %\n\n{}\n{} of several steps: median error {}, {} within \
         1 %; {} beyond 5 %, of which {} say nothing\n",
        counted(summary.recordings, "recording"),
        columns.text(),
        summary.several_steps,
        percent(summary.median),
        summary.within_1_percent,
        summary.beyond,
        summary.silent,
    )
}

fn signed(error: f64) -> String {
    if error.is_finite() { format!("{:+.1}", 100.0 * error) } else { "-".into() }
}
