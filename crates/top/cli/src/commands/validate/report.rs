//! A validation as tables.

use std::collections::BTreeMap;

use steptime_answers::{
    ValidationReport,
    validate::{Errors, FamilyErrors, Recording},
};

use crate::report::csv::Table;
use crate::report::format::{counted, ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns the answer as text.
pub fn text(answer: &ValidationReport) -> String {
    let inside = answer.rows.iter().filter(|row| row.inside).count();
    let from = if answer.lone { ", from execution traces alone" } else { "" };
    let head = format!(
        "{}, host {}, kernels {}{from}",
        counted(answer.rows.len(), "recording"),
        answer.host,
        answer.kernels
    );
    let legend = "times in ms; error, paper, kernels, active and replay: errors in %; host: its slowness";
    let mut text = format!(
        "{}\n{}{}\n\n{}\n{}\nthe {:.0} % interval holds the measured step in {inside} of {}\n",
        wrapped(&head, prose(), 2),
        left_out(answer),
        wrapped(legend, prose(), 2),
        rows(&answer.rows).text(),
        summary(answer).text(),
        100.0 * answer.summary.interval.level,
        answer.rows.len(),
    );
    if let (Some(coverage), false) = (&answer.coverage, answer.families.is_empty()) {
        let head = format!("per op, kernels of {}: {}", answer.kernels, coverage.text());
        text.push_str(&format!("\n{}\n{}\n", wrapped(&head, prose(), 2), families(&answer.families).text()));
    }
    for warning in &answer.warnings {
        text.push_str(&wrapped(&format!("! {warning}"), prose(), 2));
        text.push('\n');
    }
    text
}

/// Returns the answer as CSV.
pub fn csv(answer: &ValidationReport) -> Table {
    let columns = "recording=name architecture measured_ms predicted_ms error low_ms=interval_ms/0 high_ms=interval_ms/1 inside \
                   in_sample paper_ms paper_published_ms kernel_sum_ms active_measured_ms active_predicted_ms profiled_ms \
                   replayed_ms replay_error host_slowness";
    Table::from_rows(columns, &answer.rows)
}

/// Returns the groups of recordings that are left out together.
fn left_out(answer: &ValidationReport) -> String {
    if answer.host != "leave-one-out" {
        return String::new();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &answer.rows {
        *counts.entry(&row.architecture).or_default() += 1;
    }
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    wrapped(&format!("left out together: {}", each.join(", ")), prose(), 2) + "\n"
}

fn rows(rows: &[Recording]) -> Columns {
    let interval = |row: &Recording| {
        let [low, high] = row.interval_ms;
        let outside = if row.inside { ' ' } else { '!' };
        format!("{low:.2}-{high:.2}{outside}")
    };
    Columns::from_rows(
        &[
            ("~recording", |row: &Recording| row.name.clone()),
            (">measured", |row| ms(row.measured_ms)),
            (">predicted", |row| ms(row.predicted_ms)),
            (">error", |row| signed(row.error)),
            (">90 % interval", interval),
            ("?>paper", |row| signed(row.paper_ms / row.measured_ms - 1.0)),
            ("?>kernels", |row| signed(row.kernel_sum_ms / row.measured_ms - 1.0)),
            (">active", |row| signed(row.active_predicted_ms / row.active_measured_ms - 1.0)),
            (">replay", |row| row.replay_error.map_or("-".into(), signed)),
            (">host", |row| row.host_slowness.map_or("-".into(), |slowness| format!("{slowness:.2}"))),
        ],
        rows,
    )
    .tight()
}

/// Returns the table with the columns of the paper's Table IV, and a few more.
fn families(families: &[FamilyErrors]) -> Columns {
    Columns::from_rows(
        &[
            ("~family", |row: &FamilyErrors| row.family.clone()),
            (">ops", |row| row.count.to_string()),
            (">time", |row| percent(row.time_share)),
            (">at most", |row| percent(row.max_share)),
            (">GMAE", |row| percent(row.gmae)),
            (">mean", |row| percent(row.mean)),
            (">std", |row| percent(row.std)),
            (">by time", |row| percent(row.time_weighted)),
            (">inside", |row| percent(row.inside)),
        ],
        families,
    )
}

/// Formats a signed fraction in percent, without the percent sign.
fn signed(error: f64) -> String {
    if error.is_finite() { format!("{:+.1}", 100.0 * error) } else { "-".into() }
}

fn summary(answer: &ValidationReport) -> Columns {
    let mut columns = Columns::new(&["absolute error", ">GMAE", ">mean", ">p90", ">max"]);
    let summary = &answer.summary;
    let scores: [(&str, &Errors); 6] = [
        ("simulate", &summary.simulate),
        ("paper", &summary.paper),
        ("paper (2 and 4 us)", &summary.paper_published),
        ("kernel-sum", &summary.kernel_sum),
        ("active time", &summary.active),
        ("replay of the profiled step", &summary.replay),
    ];
    for (name, score) in scores {
        let [gmae, mean, p90, max] = [score.gmae, score.mean, score.p90, score.max].map(percent);
        columns.row([name.to_owned(), gmae, mean, p90, max]);
    }
    columns
}
