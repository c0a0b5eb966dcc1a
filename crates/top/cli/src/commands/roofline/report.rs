//! A roofline: as a table, as a plot.

use kuva::plot::LinePlot;
use kuva::plot::scatter::ScatterPlot;
use kuva::render::annotations::TextAnnotation;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use serde_json::json;
use steptime_answers::RooflineReport;
use steptime_cost::device::DeviceSpec;

use crate::output::name;
use crate::report::csv::Table;
use crate::report::figure::scale::{Scale, number};
use crate::report::figure::{COLOURS, QUIET, svg};
use crate::report::format::percent;
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Number of rows in the table.
const SHOWN: usize = 25;
/// Smallest share of device time of a plotted row.
const PLOTTED: f64 = 1e-4;

/// Returns the answer as a table.
pub fn text(answer: &RooflineReport) -> String {
    match answer.attainable_ms {
        Some(attainable_ms) => by_op(answer, attainable_ms),
        None => by_name(answer),
    }
}

/// Returns the answer as CSV.
pub fn csv(answer: &RooflineReport) -> Table {
    let columns = "op family count time_us bytes flops intensity_flop_per_byte=intensity gb_s tflop_s roof_share=share bound \
                   shapes kernel";
    let mut table = Table::new(columns);
    for row in &answer.kernels {
        table.row_with(&json!({"shapes": shapes(&row.shapes)}), row);
    }
    table
}

fn by_op(answer: &RooflineReport, attainable_ms: f64) -> String {
    let mut columns = Columns::new(&[
        "~op",
        "?family",
        ">count",
        ">us",
        "?>KB each",
        ">flop/B",
        ">GB/s",
        ">TFLOP/s",
        ">of roof",
        "bound by",
        "?~shapes",
    ]);
    for row in answer.kernels.iter().take(SHOWN) {
        columns.row([
            row.op.clone(),
            row.family.to_owned(),
            row.count.to_string(),
            format!("{:.1}", row.time_us),
            row.bytes.map_or_else(String::new, |bytes| format!("{:.1}", bytes as f64 / 1e3)),
            row.intensity.map_or_else(String::new, |intensity| format!("{intensity:.1}")),
            row.gb_s.map_or_else(String::new, |rate| format!("{rate:.0}")),
            row.tflop_s.map_or_else(String::new, |rate| format!("{rate:.2}")),
            row.share.map_or_else(String::new, percent),
            row.bound.unwrap_or_default().to_owned(),
            shapes(&row.shapes),
        ]);
    }
    let head = format!(
        "{} on {}: {:.3} ms of device time {}, {:.3} ms at the device's own rates ({})",
        name(&answer.title),
        name(&answer.device),
        answer.device_ms,
        answer.times,
        attainable_ms,
        percent(attainable_ms / answer.device_ms.max(f64::MIN_POSITIVE)),
    );
    format!("{}\n\n{}{}", wrapped(&head, prose(), 2), columns.text(), rest(answer))
}

/// Returns kernels by name: only copies and fills have known work, and a roof if the GPU has a profile.
fn by_name(answer: &RooflineReport) -> String {
    let with_roof = answer.kernels.iter().any(|row| row.share.is_some());
    let mut names = vec!["~kernel", "?kind", ">count", ">us", ">of all", ">GB/s"];
    if with_roof {
        names.extend([">of roof", "bound by"]);
    }
    let mut columns = Columns::new(&names);
    for row in answer.kernels.iter().take(SHOWN) {
        let mut cells = vec![
            row.kernel.clone().unwrap_or_default(),
            row.family.to_owned(),
            row.count.to_string(),
            format!("{:.1}", row.time_us),
            percent(row.time_us / (1e3 * answer.device_ms).max(f64::MIN_POSITIVE)),
            row.gb_s.map_or_else(String::new, |rate| format!("{rate:.0}")),
        ];
        if with_roof {
            cells.extend([
                row.share.map_or_else(String::new, percent),
                row.bound.unwrap_or_default().to_owned(),
            ]);
        }
        columns.row(cells);
    }
    let head = format!(
        "{} on {}: {:.3} ms of device time {}, by kernel name: without arguments of ops the work of kernels is not known",
        name(&answer.title),
        name(&answer.device),
        answer.device_ms,
        answer.times,
    );
    format!("{}\n\n{}{}", wrapped(&head, prose(), 2), columns.text(), rest(answer))
}

/// Returns the number of rows that are not shown.
fn rest(answer: &RooflineReport) -> String {
    let more = answer.kernels.len().saturating_sub(SHOWN);
    if more > 0 { format!("and {more} more: --json shows all\n") } else { String::new() }
}

/// Formats shapes as `2048x512, 512x1024`; a scalar is `1`.
pub fn shapes(all: &[Vec<i64>]) -> String {
    let one = |shape: &Vec<i64>| match shape.as_slice() {
        [] => "1".to_owned(),
        sides => sides.iter().map(i64::to_string).collect::<Vec<_>>().join("x"),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Plots the roofline as SVG: arithmetic intensity against achieved rate, both on logarithmic axes.
pub fn plot(answer: &RooflineReport, spec: &DeviceSpec) -> String {
    // Kernels of negligible time would only stretch the axes.
    let least = PLOTTED * answer.device_ms * 1e3;
    let counted = || answer.kernels.iter().filter(|row| row.flops > Some(0) && row.time_us >= least);
    let least = counted().filter_map(|row| row.intensity).fold(0.05, f64::min);
    let most = counted().filter_map(|row| row.intensity).fold(1e3, f64::max) * 2.0;
    let mut plots: Vec<Plot> = Vec::new();
    let peaks =
        [("fp32", spec.peak.f32_tflop_s), ("TF32", spec.peak.tf32_tflop_s), ("bf16", spec.peak.bf16_tflop_s)];
    let mut labels = vec![label(
        format!("memory {} GB/s", number(spec.memory.rate_gb_s.round())),
        least * 4.0,
        least * 4.0 * spec.memory.rate_gb_s / 1e3,
    )];
    for (name, peak) in peaks.into_iter().filter(|(_, peak)| *peak > 0.0) {
        let ridge = peak * 1e3 / spec.memory.rate_gb_s;
        let slope = |x: f64| (x, (x * spec.memory.rate_gb_s / 1e3).min(peak));
        let line = LinePlot::new().with_data([slope(least), slope(ridge), slope(most.max(ridge))]);
        plots.push(Plot::Line(line.with_color(QUIET).with_stroke_width(1.0)));
        labels.push(label(format!("{name} {} TFLOP/s", number(peak.round())), most / 8.0, peak));
    }
    let mut families: Vec<&str> = Vec::new();
    for row in counted() {
        if !families.contains(&row.family) {
            families.push(row.family);
        }
    }
    for (at, family) in families.iter().enumerate() {
        let of_family = counted().filter(|row| row.family == *family);
        let points: Vec<(f64, f64)> = of_family.filter_map(|row| row.intensity.zip(row.tflop_s)).collect();
        let colour = COLOURS[at.min(COLOURS.len() - 1)];
        plots.push(Plot::Scatter(
            ScatterPlot::new().with_data(points).with_color(colour).with_legend(*family),
        ));
    }
    let layout = Layout::auto_from_plots(&plots)
        .with_title(format!("{} on {}, {} times", answer.title, spec.name, answer.times))
        .with_x_label("arithmetic intensity, flop/byte")
        .with_y_label("TFLOP/s")
        .with_log_scale();
    let layout = labels.into_iter().fold(layout, Layout::with_annotation);
    svg(plots, Scale::Logarithmic.along_y(Scale::Logarithmic.along_x(layout, most)))
}

/// Returns the label of a roof, above it.
fn label(text: String, intensity: f64, tflop_s: f64) -> TextAnnotation {
    TextAnnotation::new(text, intensity, tflop_s * 1.15).with_color(QUIET).with_font_size(11)
}
