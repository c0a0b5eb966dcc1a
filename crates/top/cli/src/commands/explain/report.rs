//! The bound of a step, and the changes that shorten it.

use serde_json::json;
use steptime_answers::{ExplainReport, choose::RemedyEntry, what_if::Side};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::doubts;
use crate::report::format::{grouped, ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, shorten, width, wrapped};

/// Number of places on the critical path to show.
const PLACES: usize = 3;

/// Returns the answer as text.
pub fn text(answer: &ExplainReport) -> String {
    let device = name(answer.device.as_deref().unwrap_or("an unnamed device"));
    let mut text = format!("{}\n", shorten(&format!("{} on {device}", name(&answer.title)), width()));
    let places: Vec<String> =
        answer.bound.iter().take(PLACES).map(|by| format!("{} {}", by.place, percent(by.share))).collect();
    let rate =
        answer.before.samples_per_s.map(|rate| format!(", {} samples/s", grouped(rate.round() as u64)));
    let head = format!(
        "step {} ms{}, device active {} ms; critical path: {}",
        ms(answer.before.step_ms),
        rate.unwrap_or_default(),
        ms(answer.before.active_ms),
        places.join(", ")
    );
    text += &format!("{}\n", wrapped(&head, prose(), 2));
    text += &doubts::text(&answer.doubts);
    text += &to_fit(&answer.to_fit);
    let mut columns = Columns::new(&["change", ">saves ms", ">step ms", ">90 % interval", "?>samples/s"]);
    let rate =
        |side: &Side| side.samples_per_s.map_or_else(|| "-".into(), |rate| grouped(rate.round() as u64));
    for found in &answer.suggestions {
        let [low, high] = found.after.interval_ms;
        columns.row([
            found.name.to_owned(),
            format!("{:+.3}", found.saves_ms),
            ms(found.after.step_ms),
            format!("{low:.2}-{high:.2}"),
            rate(&found.after),
        ]);
    }
    if let Some(all) = &answer.together {
        let [low, high] = all.after.interval_ms;
        columns.row([
            all.names.join(" + "),
            format!("{:+.3}", all.saves_ms),
            ms(all.after.step_ms),
            format!("{low:.2}-{high:.2}"),
            rate(&all.after),
        ]);
    }
    text += &format!("\n{}\n", columns.text());
    for found in &answer.suggestions {
        let line = format!(
            "{}: {}. Effort: {}. Risk: {}.",
            found.name,
            found.what.join("; "),
            found.effort,
            found.risk
        );
        text += &format!("{}\n", wrapped(&line, prose(), 2));
    }
    for not in &answer.not_applicable {
        text +=
            &format!("{}\n", wrapped(&format!("{} does not apply: {}", not.name, not.reason), prose(), 2));
    }
    text
}

/// Returns the changes as CSV, the best first; the last row has several together if that is better.
pub fn csv(answer: &ExplainReport) -> Table {
    let columns = "change=name saves_ms step_ms=after/step_ms low_ms=after/interval_ms/0 high_ms=after/interval_ms/1 \
                   active_ms=after/active_ms effort risk";
    let mut table = Table::from_rows(columns, &answer.suggestions);
    if let Some(all) = &answer.together {
        table.row_with(&json!({"change": all.names.join(" + ")}), all);
    }
    table
}

/// Returns the table of changes tried to make the step fit, those that fit first.
fn to_fit(remedies: &[RemedyEntry]) -> String {
    if remedies.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new(&["to fit", "options", ">peak GB", "fits", ">step ms", ">samples/s"]);
    let (fitting, others): (Vec<&RemedyEntry>, Vec<&RemedyEntry>) =
        remedies.iter().partition(|remedy| remedy.fits);
    let mut refused = String::new();
    for remedy in fitting.into_iter().chain(others) {
        if let Some(reason) = &remedy.reason {
            refused += &(wrapped(&format!("{} does not apply: {reason}", remedy.name), prose(), 2) + "\n");
            continue;
        }
        let number = |value: Option<f64>, shown: fn(f64) -> String| value.map_or_else(|| "-".into(), shown);
        columns.row([
            remedy.name.to_owned(),
            remedy.options.clone(),
            number(remedy.peak_mb, |mb| format!("{:.1}", mb / 1e3)),
            if remedy.fits { "yes".into() } else { "no".into() },
            number(remedy.step_ms, ms),
            number(remedy.samples_per_s, |rate| grouped(rate.round() as u64)),
        ]);
    }
    format!("\n{}{refused}", columns.text())
}
