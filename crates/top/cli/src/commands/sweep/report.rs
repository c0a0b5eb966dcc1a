//! Results of a grid of changes.

use serde_json::json;
use steptime_answers::{GridReport, grid::GridBest};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{grouped, ms};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns the answer as text.
pub fn text(answer: &GridReport) -> String {
    let mut head = format!("{}: {} points in {}", name(&answer.title), answer.points, name(&answer.output));
    if answer.resumed > 0 {
        head += &format!(", {} of them from before", answer.resumed);
    }
    if answer.not_applicable > 0 {
        head += &format!("; the change does not apply to {} of them", answer.not_applicable);
    }
    if answer.does_not_fit > 0 {
        head += &format!("; {} of them do not fit in memory, and are last", answer.does_not_fit);
    }
    let mut text = format!("{}\n\n{}", wrapped(&head, prose(), 2), table(&answer.best));
    if !answer.largest.is_empty() {
        text += &format!("\nlargest batch that fits\n{}", table(&answer.largest));
    }
    text
}

/// Returns the best points as CSV.
pub fn csv(answer: &GridReport) -> Table {
    let mut table = Table::new("point change step_ms samples_per_s peak_mb fits");
    for best in &answer.best {
        let keys: Vec<String> = best.keys.iter().map(|(key, value)| format!("{key} {value}")).collect();
        table.row_with(&json!({"change": keys.join("; ")}), &best.row);
    }
    table
}

/// Returns the table of points.
fn table(points: &[GridBest]) -> String {
    let keys = points.first().map_or(&[][..], |best| &best.keys);
    let changed = keys.iter().map(|(key, _)| format!("~{key}"));
    let numbers = [">step ms", ">90 % interval", ">samples/s", ">peak GB"].map(str::to_owned);
    let heads: Vec<String> = std::iter::once(">point".to_owned()).chain(changed).chain(numbers).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut columns = Columns::new(&heads);
    for best in points {
        let row = &best.row;
        let values = best.keys.iter().map(|(_, value)| value.clone());
        let numbers = [
            row.step_ms.map_or_else(String::new, ms),
            row.interval_ms.map_or_else(String::new, |[low, high]| format!("{low:.2}-{high:.2}")),
            row.samples_per_s.map_or_else(String::new, |rate| grouped(rate.round() as u64)),
            row.peak_mb.map_or_else(String::new, |mb| {
                format!("{}{:.1}", if row.fits == Some(false) { "! " } else { "" }, mb / 1e3)
            }),
        ];
        columns.row(std::iter::once(row.point.to_string()).chain(values).chain(numbers));
    }
    columns.text()
}
