//! One step on several GPUs, as one table.

use std::collections::BTreeMap;

use serde_json::json;
use steptime_answers::{CompareReport, PredictionReport};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, shorten, width, wrapped};

/// Share of kernel times from models of another GPU above which the table says so.
const MOST: f64 = 0.5;

/// Returns the answer as text.
pub fn text(answer: &CompareReport) -> String {
    let Some(first) = answer.predictions.first() else { return String::new() };
    let times = first.host_slower_than.as_ref().map_or_else(String::new, |than| format!(" x {}", than.times));
    let head = format!(
        "{}: method {}, host {}{times}, process {}",
        name(&first.title),
        first.method,
        shorten(&first.host, 60),
        first.process
    );
    let legend = "limited by: place of most of the critical path; fitted: share of kernel times from models fitted on this GPU, or \
         `transferred` if most come from models of another GPU";
    let mut text = format!("{}\n{}\n\n", wrapped(&head, width(), 2), wrapped(legend, prose(), 2));
    text.push_str(&table(&answer.predictions).text());
    for (said, of) in distinct_doubts(&answer.predictions) {
        let whom =
            if of.len() == answer.predictions.len() { String::new() } else { format!("{}: ", of.join(", ")) };
        text.push_str(&format!("{}\n", wrapped(&format!("! {whom}{said}"), prose(), 2)));
    }
    text
}

/// Returns the answer as CSV.
pub fn csv(answer: &CompareReport) -> Table {
    let columns = "device=kernels gpu=device step_ms low_ms=interval_ms/0 high_ms=interval_ms/1 active_ms idle_ms limited_by \
                   limit_share fitted_share=kernel_coverage/fitted estimate doubts";
    let mut table = Table::new(columns);
    for row in &answer.predictions {
        let (place, share) = limit(row).unzip();
        let others = json!({
            "idle_ms": row.active_ms.map(|active| row.step_ms - active),
            "limited_by": place,
            "limit_share": share,
            "estimate": row.doubts.iter().all(|doubt| !doubt.no_estimate),
            "doubts": doubts(row),
        });
        table.row_with(&others, row);
    }
    table
}

fn table(predictions: &[PredictionReport]) -> Columns {
    let names =
        ["~device", ">step ms", ">90 % interval", ">active", ">idle", "limited by", ">fitted", "doubts"];
    let mut columns = Columns::new(&names).tight();
    for row in predictions {
        let unknown = row.doubts.iter().any(|doubt| doubt.no_estimate);
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        columns.row([
            row.kernels.clone(),
            if unknown { "unknown".into() } else { ms(row.step_ms) },
            or_dash(row.interval_ms.map(|[low, high]| format!("{low:.2}-{high:.2}"))),
            or_dash(row.active_ms.map(ms)),
            or_dash(row.active_ms.map(|active| ms(row.step_ms - active))),
            or_dash(limit(row).map(|(place, share)| format!("{place} {:.0} %", 100.0 * share))),
            or_dash(row.kernel_coverage.map(|shares| {
                if shares.transferred > MOST { "transferred".into() } else { percent(shares.fitted) }
            })),
            doubts(row),
        ]);
    }
    columns
}

/// Returns the place with the longest time on the critical path, and its share.
pub fn limit(answer: &PredictionReport) -> Option<(&'static str, f64)> {
    let mut places: BTreeMap<&'static str, f64> = BTreeMap::new();
    for piece in answer.critical_path.iter().flatten() {
        *places.entry(piece.place).or_default() += piece.ms;
    }
    let total: f64 = places.values().sum();
    let most = places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (total > 0.0).then_some((most.0, most.1 / total))
}

/// Returns the kinds of doubts: `replay, unpriced`.
pub fn doubts(answer: &PredictionReport) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for doubt in &answer.doubts {
        if !kinds.contains(&doubt.kind) {
            kinds.push(doubt.kind);
        }
    }
    kinds.join(", ")
}

/// Returns the distinct doubts in the order of their first occurrence, each with its GPUs.
fn distinct_doubts(predictions: &[PredictionReport]) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in predictions {
        for text in row.doubts.iter().map(|doubt| &doubt.text) {
            match all.iter_mut().find(|(known, _)| known == text) {
                Some((_, of)) => of.push(&row.kernels),
                None => all.push((text, vec![&row.kernels])),
            }
        }
    }
    all
}
