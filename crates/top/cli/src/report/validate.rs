//! A validation as tables.

use std::collections::BTreeMap;

use super::format::{counted, ms, percent, shorten, wrapped};
use super::json_validate::{Answer, FamilyJson, RowJson, ScoreJson};
use super::table::Columns;

/// Characters of a line.
const WIDTH: usize = 100;

/// The answer as text.
pub fn text(answer: &Answer) -> String {
    let inside = answer.rows.iter().filter(|row| row.inside).count();
    let mut text = format!(
        "{}, host {}, kernels {}{}\n{}times in ms; error, paper, kernels, active and replay: how far off, in %; host: its slowness\n\n{}\n{}\nthe {:.0} % interval holds the measured step in {} of {}\n",
        counted(answer.rows.len(), "recording"),
        answer.host,
        answer.kernels,
        if answer.lone { ", from execution traces alone" } else { "" },
        left_out(answer),
        rows(&answer.rows).text(),
        summary(answer).text(),
        100.0 * answer.summary.interval.level,
        inside,
        answer.rows.len(),
    );
    if let (Some(coverage), false) = (&answer.coverage, answer.families.is_empty()) {
        text.push_str(&format!(
            "\nper op, kernels of {}: {}\n{}\n",
            answer.kernels,
            coverage.text(),
            families(&answer.families).text()
        ));
    }
    for warning in &answer.warnings {
        text.push_str(&wrapped(&format!("! {warning}"), WIDTH, 2));
        text.push('\n');
    }
    text
}

/// Which recordings are left out together.
fn left_out(answer: &Answer) -> String {
    if answer.host != "leave-one-out" {
        return String::new();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &answer.rows {
        *counts.entry(&row.architecture).or_default() += 1;
    }
    let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    wrapped(&format!("left out together: {}", each.join(", ")), WIDTH, 2) + "\n"
}

fn rows(rows: &[RowJson]) -> Columns {
    let mut columns = Columns::new(&[
        "recording",
        ">measured",
        ">predicted",
        ">error",
        ">90 % interval",
        ">paper",
        ">kernels",
        ">active",
        ">replay",
        ">host",
    ])
    .tight();
    for row in rows {
        let [low, high] = row.interval_ms;
        let outside = if row.inside { ' ' } else { '!' };
        columns.row([
            shorten(&row.name, 24),
            ms(row.measured_ms),
            ms(row.predicted_ms),
            signed(row.error),
            format!("{low:.2}-{high:.2}{outside}"),
            signed(row.paper_ms / row.measured_ms - 1.0),
            signed(row.kernel_sum_ms / row.measured_ms - 1.0),
            signed(row.active_predicted_ms / row.active_measured_ms - 1.0),
            row.replay_error.map_or("-".into(), signed),
            row.host_slowness.map_or("-".into(), |slowness| format!("{slowness:.2}")),
        ]);
    }
    columns
}

/// The columns of the paper's Table IV, and a few more.
fn families(families: &[FamilyJson]) -> Columns {
    let names = ["family", ">ops", ">time", ">at most", ">GMAE", ">mean", ">std", ">by time", ">inside"];
    let mut columns = Columns::new(&names);
    for row in families {
        let shares =
            [row.time_share, row.max_share, row.gmae, row.mean, row.std, row.time_weighted, row.inside];
        let mut cells = vec![row.family.clone(), row.count.to_string()];
        cells.extend(shares.map(percent));
        columns.row(cells);
    }
    columns
}

/// A signed fraction as a percentage without its sign.
fn signed(error: f64) -> String {
    if error.is_finite() { format!("{:+.1}", 100.0 * error) } else { "-".into() }
}

fn summary(answer: &Answer) -> Columns {
    let mut columns = Columns::new(&["absolute error", ">GMAE", ">mean", ">p90", ">max"]);
    let summary = &answer.summary;
    let scores: [(&str, &ScoreJson); 6] = [
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
