//! A model on several numbers of GPUs.

use kuva::plot::LinePlot;
use kuva::plot::scatter::ScatterPlot;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use steptime_answers::{ScaleReport, scale::ScaleRow};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::figure::scale::Scale;
use crate::report::figure::{COLOURS, QUIET, svg};
use crate::report::format::{grouped, ms, percent};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Returns the answer as text.
pub fn text(answer: &ScaleReport) -> String {
    let batch = if answer.weak { "each GPU keeps its samples" } else { "all GPUs share the samples" };
    let mut text = format!("{} on {}: {batch}\n", name(&answer.name), name(&answer.device));
    for doubt in &answer.doubts {
        text.push_str(&(wrapped(&format!("! {doubt}"), prose(), 2) + "\n"));
    }
    text.push('\n');
    let priced = answer.rows.iter().any(|row| row.cost.is_some());
    let in_nodes = answer.rows.iter().any(|row| row.nodes.is_some());
    let mut heads = vec![">GPUs"];
    heads.extend(in_nodes.then_some(">nodes"));
    heads.extend([">batch", ">step ms", ">90 % interval", ">samples/s", ">efficiency", ">exposed ms"]);
    heads.extend(priced.then_some(">cost of 10^9"));
    let mut columns = Columns::new(&heads);
    for row in &answer.rows {
        let [low, high] = row.interval_ms;
        let mut cells = vec![row.gpus.to_string()];
        if in_nodes {
            cells.push(row.nodes.map_or_else(|| "-".to_owned(), |nodes| nodes.to_string()));
        }
        cells.extend([
            grouped(row.batch),
            ms(row.step_ms),
            format!("{}-{}", ms(low), ms(high)),
            grouped(row.samples_per_s.round() as u64),
            percent(row.efficiency),
            ms(row.exposed_ms),
        ]);
        if priced {
            cells.push(row.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.2}")));
        }
        columns.row(cells);
    }
    text.push_str(&columns.text());
    text.push_str(&wrapped(
        "efficiency: samples a second of each GPU, relative to the first row; exposed: communication while nothing else runs",
        prose(),
        2,
    ));
    text.push('\n');
    text
}

/// Returns the answer as CSV.
pub fn csv(answer: &ScaleReport) -> Table {
    let columns = "gpus nodes batch step_ms low_ms=interval_ms/0 high_ms=interval_ms/1 samples_per_s efficiency exposed_ms cost";
    Table::from_rows(columns, &answer.rows)
}

/// Plots samples per second over the number of GPUs, with a line of linear scaling, as SVG.
pub fn plot(answer: &ScaleReport) -> String {
    let gpus = || answer.rows.iter().map(|row| f64::from(row.gpus));
    let along = Scale::from_points(gpus());
    let line = |of: &dyn Fn(&ScaleRow) -> f64, colour: &str, width: f64| {
        let points = answer.rows.iter().map(|row| (along.place(f64::from(row.gpus)), of(row)));
        LinePlot::new().with_data(points.collect::<Vec<_>>()).with_color(colour).with_stroke_width(width)
    };
    let rate = |row: &ScaleRow, step_ms: f64| row.batch as f64 / step_ms * 1e3;
    let plots = vec![
        Plot::Line(line(&|row| row.samples_per_s / row.efficiency, QUIET, 1.0).with_legend("linear scaling")),
        Plot::Line(line(&|row| rate(row, row.interval_ms[1]), COLOURS[5], 1.0).with_legend("90 % interval")),
        Plot::Line(line(&|row| rate(row, row.interval_ms[0]), COLOURS[5], 1.0)),
        Plot::Line(line(&|row| row.samples_per_s, COLOURS[0], 2.0).with_legend("predicted")),
        Plot::Scatter(
            ScatterPlot::new()
                .with_data(
                    answer
                        .rows
                        .iter()
                        .map(|row| (along.place(f64::from(row.gpus)), row.samples_per_s))
                        .collect::<Vec<_>>(),
                )
                .with_color(COLOURS[0]),
        ),
    ];
    let batch = if answer.weak { "each GPU keeps its samples" } else { "all GPUs share the samples" };
    let layout = Layout::auto_from_plots(&plots)
        .with_title(format!("{} on {}: {batch}", answer.name, answer.device))
        .with_x_label("GPUs")
        .with_y_label("samples a second");
    let rates = || answer.rows.iter().map(|row| row.samples_per_s);
    let ends = [rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)];
    svg(plots, Scale::from_range(ends[0], ends[1]).along_y(along.along_x(layout, gpus().fold(0.0, f64::max))))
}
