//! Step times over one key of a grid, a line for each value of another.

use kuva::backend::svg::SvgBackend;
use kuva::plot::LinePlot;
use kuva::plot::scatter::ScatterPlot;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;

/// Colours that are told apart by those who do not see all colours (Okabe and Ito 2008).
const COLOURS: [&str; Plotted::MOST] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"];
/// The colour of points that do not run.
const OUTSIDE: &str = "#9a9a9a";
/// An axis whose numbers differ by more than this factor is logarithmic.
const WIDE: f64 = 30.0;

/// What is plotted.
pub struct Plotted {
    /// The step.
    pub title: String,
    /// The key along the axis.
    pub x: String,
    /// The key of the lines.
    pub by: Option<String>,
    /// Other keys: over their values the shortest step is taken.
    pub least_over: Vec<String>,
    /// Lines by value: numbers of the key, and step times in milliseconds.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
    /// The same of points that do not fit their GPU's memory, all together.
    pub outside: Vec<(f64, f64)>,
}

impl Plotted {
    /// The most lines.
    pub const MOST: usize = 8;
}

/// The plot as SVG.
pub fn plot(plotted: &Plotted) -> String {
    let mut plots: Vec<Plot> = Vec::new();
    let drawn = plotted.lines.iter().zip(COLOURS).filter(|((_, line), _)| !line.is_empty());
    for ((value, points), colour) in drawn {
        let line =
            LinePlot::new().with_data(points.iter().copied()).with_color(colour).with_stroke_width(2.0);
        plots.push(Plot::Line(match &plotted.by {
            Some(key) => line.with_legend(format!("{key} {value}")),
            None => line,
        }));
        let points = ScatterPlot::new().with_data(points.iter().copied()).with_color(colour);
        plots.push(Plot::Scatter(points));
    }
    if !plotted.outside.is_empty() {
        let outside = ScatterPlot::new().with_data(plotted.outside.iter().copied()).with_color(OUTSIDE);
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
    let all = || plotted.lines.iter().flat_map(|(_, line)| line).chain(&plotted.outside);
    let wide = |of: fn(&(f64, f64)) -> f64| {
        let least = all().map(of).fold(f64::INFINITY, f64::min);
        let most = all().map(of).fold(0.0, f64::max);
        least > 0.0 && most > least * WIDE
    };
    let layout = if wide(|point| point.0) { layout.with_log_x() } else { layout };
    let layout = if wide(|point| point.1) { layout.with_log_y() } else { layout };
    SvgBackend.render_scene(&render_multiple(plots, layout))
}
