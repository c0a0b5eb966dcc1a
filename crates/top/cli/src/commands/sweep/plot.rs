//! Plots of step times over one key of a grid, with a line for each value of another.

use kuva::plot::LinePlot;
use kuva::plot::scatter::ScatterPlot;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use crate::report::figure::scale::Scale;
use crate::report::figure::{COLOURS, svg};

/// Colour of points that do not fit.
const OUTSIDE: &str = "#9a9a9a";

/// Data of a plot.
pub struct PlotData {
    /// Title of the step.
    pub title: String,
    /// Key along the x axis.
    pub x: String,
    /// Key of the lines.
    pub by: Option<String>,
    /// Other keys, over whose values the shortest step is taken.
    pub least_over: Vec<String>,
    /// Lines by value: numbers of the key, and step times in milliseconds.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
    /// The same for all points that do not fit their GPU's memory.
    pub outside: Vec<(f64, f64)>,
}

impl PlotData {
    /// Maximum number of lines.
    pub const MOST: usize = COLOURS.len();
}

/// Returns the plot as SVG.
pub fn plot(plotted: &PlotData) -> String {
    let all = || plotted.lines.iter().flat_map(|(_, line)| line).chain(&plotted.outside);
    let along = Scale::from_points(all().map(|point| point.0));
    let placed = |points: &[(f64, f64)]| points.iter().map(|&(x, y)| (along.place(x), y)).collect::<Vec<_>>();
    let mut plots: Vec<Plot> = Vec::new();
    let drawn = plotted.lines.iter().zip(COLOURS).filter(|((_, line), _)| !line.is_empty());
    for ((value, points), colour) in drawn {
        let line = LinePlot::new().with_data(placed(points)).with_color(colour).with_stroke_width(2.0);
        plots.push(Plot::Line(match &plotted.by {
            Some(key) => line.with_legend(format!("{key} {value}")),
            None => line,
        }));
        let points = ScatterPlot::new().with_data(placed(points)).with_color(colour);
        plots.push(Plot::Scatter(points));
    }
    if !plotted.outside.is_empty() {
        let outside = ScatterPlot::new().with_data(placed(&plotted.outside)).with_color(OUTSIDE);
        plots.push(Plot::Scatter(outside.with_legend("does not fit in memory")));
    }
    let least = match plotted.least_over.as_slice() {
        [] => String::new(),
        keys => format!(", the shortest over {}", keys.join(", ")),
    };
    let x = match plotted.x.as_str() {
        "batch" => "batch, samples".to_owned(),
        "host-speed" => "host time, times as long as recorded".to_owned(),
        other => other.to_owned(),
    };
    let layout = Layout::auto_from_plots(&plots)
        .with_title(format!("{}: predicted step{least}", plotted.title))
        .with_x_label(x)
        .with_y_label("step, ms");
    let ends = |of: fn(&(f64, f64)) -> f64| {
        all().map(of).fold([f64::INFINITY, 0.0], |[least, most], value| [least.min(value), most.max(value)])
    };
    let [[_, last], [least, most]] = [ends(|point| point.0), ends(|point| point.1)];
    svg(plots, Scale::from_range(least, most).along_y(along.along_x(layout, last)))
}
