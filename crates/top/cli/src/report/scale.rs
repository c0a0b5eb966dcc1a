//! A model on several numbers of GPUs.

use steptime::answers::Scaled;

use super::format::{grouped, ms, percent};
use super::table::Columns;
use super::width::{prose, wrapped};
use crate::output::name;

/// The answer as text.
pub fn text(answer: &Scaled) -> String {
    let batch = if answer.weak { "each GPU keeps its samples" } else { "all GPUs share the samples" };
    let mut text = format!("{} on {}: {batch}\n", name(&answer.name), name(&answer.device));
    for doubt in &answer.doubts {
        text.push_str(&(wrapped(&format!("! {doubt}"), prose(), 2) + "\n"));
    }
    text.push('\n');
    let priced = answer.rows.iter().any(|row| row.cost.is_some());
    let mut heads =
        vec![">GPUs", ">batch", ">step ms", ">90 % interval", ">samples/s", ">efficiency", ">exposed ms"];
    heads.extend(priced.then_some(">cost of 10^9"));
    let mut columns = Columns::new(&heads);
    for row in &answer.rows {
        let [low, high] = row.interval_ms;
        let mut cells = vec![
            row.gpus.to_string(),
            grouped(row.batch),
            ms(row.step_ms),
            format!("{}-{}", ms(low), ms(high)),
            grouped(row.samples_per_s.round() as u64),
            percent(row.efficiency),
            ms(row.exposed_ms),
        ];
        if priced {
            cells.push(row.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.2}")));
        }
        columns.row(cells);
    }
    text.push_str(&columns.text());
    text.push_str(&wrapped(
        "efficiency: samples a second of each GPU, relative to the first row; exposed: data on its way while nothing else runs",
        prose(),
        2,
    ));
    text.push('\n');
    text
}
