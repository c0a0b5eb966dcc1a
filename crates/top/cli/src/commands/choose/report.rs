//! A step on several GPUs.

use serde_json::json;
use steptime_answers::{
    ChooseReport,
    choose::{GpuReport, PointEntry, RatioEntry},
};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::doubts;
use crate::report::format::{grouped, ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, shorten, width, wrapped};

/// Explanation of the columns.
const LEGEND: &str = "memory GB: peak of tensors, of the GPU's memory; host (%): saving with a GPU twice as fast; of the first: samples/s \
                      relative to the first GPU, without the uncertainty of the host, which all GPUs share";

/// Returns the answer as text.
pub fn text(answer: &ChooseReport) -> String {
    let batch =
        answer.batch.map_or_else(|| "batch unknown".to_owned(), |batch| format!("batch {}", grouped(batch)));
    let times =
        answer.host_slower_than.as_ref().map_or_else(String::new, |than| format!(" x {}", than.times));
    let gpus = answer.gpus.len();
    let head = format!(
        "{}: {batch} on {gpus} {}; host {}{times}, process {}",
        name(&answer.title),
        if gpus == 1 { "GPU" } else { "GPUs" },
        shorten(&answer.host, 60),
        answer.process
    );
    let mut text = wrapped(&head, width(), 2) + "\n";
    text += &doubts::text(&answer.doubts);
    for sentence in &answer.says {
        text += &(wrapped(sentence, prose(), 2) + "\n");
    }
    let (largest, rest) = (largest(answer), recorded(answer));
    if answer.gpus.iter().any(|gpu| gpu.largest.is_some()) {
        text +=
            &format!("\nat the largest batch that fits with a tenth of the memory free\n{}", largest.text());
    }
    text += &format!("\nat the recorded batch\n{}", rest.text());
    text + &wrapped(LEGEND, prose(), 2) + "\n"
}

/// Returns the answer as CSV: each GPU at the recorded batch and at the largest that fits, the best GPU first.
pub fn csv(answer: &ChooseReport) -> Table {
    let columns = "gpu at batch step_ms low_ms=interval_ms/0 high_ms=interval_ms/1 samples_per_s peak_mb=peak_mb/total fits bound \
                   saved_by_gpu of_first=of_first/times of_first_low=of_first/interval/0 of_first_high=of_first/interval/1 cost";
    let mut table = Table::new(columns);
    for gpu in &answer.gpus {
        for (at, point) in [("recorded", Some(&gpu.recorded)), ("largest", gpu.largest.as_ref())] {
            if let Some(point) = point {
                table.row_with(&json!({"gpu": gpu.name, "at": at}), point);
            }
        }
    }
    table
}

/// Returns the table of GPUs at the largest batch of each.
fn largest(answer: &ChooseReport) -> Columns {
    table(answer, |gpu| gpu.largest.as_ref(), true)
}

/// Returns the table of GPUs at the recorded batch.
fn recorded(answer: &ChooseReport) -> Columns {
    table(answer, |gpu| Some(&gpu.recorded), false)
}

fn table(answer: &ChooseReport, of: impl Fn(&GpuReport) -> Option<&PointEntry>, with_batch: bool) -> Columns {
    let priced = answer.gpus.iter().any(|gpu| gpu.price.is_some());
    let mut heads = vec!["~GPU"];
    heads.extend(with_batch.then_some(">batch"));
    heads.extend([">memory GB", ">step ms", "?>90 % interval", ">samples/s", "bound by", ">of the first"]);
    heads.extend(priced.then_some(">cost of 10^9"));
    let mut columns = Columns::new(&heads).tight();
    for gpu in &answer.gpus {
        let Some(point) = of(gpu) else { continue };
        let mut cells = vec![gpu.name.clone()];
        if with_batch {
            cells.push(point.batch.map_or_else(dash, grouped));
        }
        let [low, high] = point.interval_ms;
        cells.extend([
            memory(gpu, point),
            ms(point.step_ms),
            format!("{low:.2}-{high:.2}"),
            point.samples_per_s.map_or_else(dash, |rate| grouped(rate.round() as u64)),
            bound(point),
            point.of_first.as_ref().map_or_else(dash, ratio),
        ]);
        if priced {
            cells.push(point.cost.map_or_else(dash, |cost| format!("{cost:.2}")));
        }
        columns.row(cells);
    }
    columns
}

/// Formats memory as `76.1 of 85.0`, with a mark if it does not fit.
fn memory(gpu: &GpuReport, point: &PointEntry) -> String {
    let Some(peak) = &point.peak_mb else { return dash() };
    let mark = if point.fits == Some(false) { "! " } else { "" };
    format!("{mark}{:.1} of {:.1}", peak.total() / 1e3, gpu.memory_mb / 1e3)
}

/// Returns the bound of a step; for the host also the share that a GPU twice as fast would save.
fn bound(point: &PointEntry) -> String {
    match (point.host_bound, point.bound) {
        (true, _) => "host alone".to_owned(),
        (_, "host") => format!("host ({})", percent(point.saved_by_gpu)),
        (_, other) => other.to_owned(),
    }
}

/// Formats a ratio as `0.84 (0.71-0.99)`.
fn ratio(ratio: &RatioEntry) -> String {
    let [low, high] = ratio.interval;
    if low == high {
        format!("{:.2}", ratio.times)
    } else {
        format!("{:.2} ({low:.2}-{high:.2})", ratio.times)
    }
}

fn dash() -> String {
    "-".to_owned()
}
