//! The answer of `roofline`: on the wire, as a table, as a plot.

use std::collections::BTreeMap;

use kuva::backend::svg::SvgBackend;
use kuva::plot::LinePlot;
use kuva::plot::scatter::ScatterPlot;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;
use serde::Serialize;
use steptime::cost::device::DeviceSpec;
use steptime::{KernelRoof, Roofline, Step};

use super::format::percent;
use super::json::SCHEMA;
use super::table::Columns;
use crate::output::name;

/// Rows that the table shows.
const SHOWN: usize = 25;
/// Rows with a smaller share of device time are not plotted.
const PLOTTED: f64 = 1e-4;
/// Colours of families, the most expensive first; the rest share the last.
const COLOURS: [&str; 8] =
    ["#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"];

/// Every kernel of a step under its roof.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    pub name: String,
    /// The profile whose rates are the roof.
    pub device: String,
    /// `measured` or `predicted`.
    pub times: &'static str,
    pub device_ms: f64,
    /// The shortest time the device could do it all in.
    pub attainable_ms: f64,
    /// Kernels of one op and size, the most expensive first.
    pub kernels: Vec<Row>,
}

/// The kernels of one op, of the same size.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub op: String,
    pub family: &'static str,
    pub count: usize,
    /// All together, in microseconds.
    pub time_us: f64,
    /// Of one.
    pub bytes: u64,
    /// Of one.
    pub flops: u64,
    /// Operations a byte.
    pub intensity: f64,
    /// Achieved, GB/s.
    pub gb_s: f64,
    /// Achieved, TFLOP/s.
    pub tflop_s: f64,
    /// The shortest possible time over the time taken.
    pub share: f64,
    /// `memory`, `cache`, `arithmetic`, `link` or `launch`.
    pub bound: &'static str,
    #[serde(skip)]
    attainable_us: f64,
}

impl Row {
    /// One launch.
    fn new(kernel: &KernelRoof) -> Row {
        let (time_us, roof) = (kernel.time.as_micros(), &kernel.roof);
        Row {
            op: kernel.op.clone(),
            family: kernel.family,
            count: 1,
            time_us,
            bytes: roof.bytes,
            flops: roof.flops,
            intensity: roof.intensity(),
            gb_s: roof.bytes as f64 / time_us / 1e3,
            tflop_s: roof.flops as f64 / time_us / 1e6,
            share: roof.attainable.as_micros() / time_us,
            bound: roof.bound.name(),
            attainable_us: roof.attainable.as_micros(),
        }
    }

    fn merge(&mut self, other: &Row) {
        self.count += other.count;
        self.time_us += other.time_us;
        self.attainable_us += other.attainable_us;
        let each = self.time_us / self.count as f64;
        self.gb_s = self.bytes as f64 / each / 1e3;
        self.tflop_s = self.flops as f64 / each / 1e6;
        self.share = self.attainable_us / self.time_us;
    }
}

impl Answer {
    /// Gathers launches.
    pub fn new(step: &Step, roofline: &Roofline) -> Answer {
        let mut groups: BTreeMap<(String, &'static str, u64, u64, &'static str), Row> = BTreeMap::new();
        for row in roofline.kernels.iter().map(Row::new) {
            let key = (row.op.clone(), row.family, row.bytes, row.flops, row.bound);
            groups.entry(key).and_modify(|group| group.merge(&row)).or_insert(row);
        }
        let mut kernels: Vec<Row> = groups.into_values().collect();
        kernels.sort_by(|a, b| b.time_us.total_cmp(&a.time_us));
        Answer {
            schema: SCHEMA,
            command: "roofline",
            name: step.name.clone(),
            device: roofline.device.clone(),
            times: if roofline.predicted { "predicted" } else { "measured" },
            device_ms: kernels.iter().map(|row| row.time_us).sum::<f64>() / 1e3,
            attainable_ms: kernels.iter().map(|row| row.attainable_us).sum::<f64>() / 1e3,
            kernels,
        }
    }

    /// As a table.
    pub fn text(&self) -> String {
        let mut columns = Columns::new(&[
            "op", "family", ">count", ">us", ">KB each", ">flop/B", ">GB/s", ">TFLOP/s", ">of roof",
            "bound by",
        ]);
        for row in self.kernels.iter().take(SHOWN) {
            columns.row([
                row.op.clone(),
                row.family.to_owned(),
                row.count.to_string(),
                format!("{:.1}", row.time_us),
                format!("{:.1}", row.bytes as f64 / 1e3),
                format!("{:.1}", row.intensity),
                format!("{:.0}", row.gb_s),
                format!("{:.2}", row.tflop_s),
                percent(row.share),
                row.bound.to_owned(),
            ]);
        }
        let more = self.kernels.len().saturating_sub(SHOWN);
        let rest = if more > 0 { format!("and {more} more: --json shows all\n") } else { String::new() };
        format!(
            "{} on {}: {:.3} ms of device time {}, {:.3} ms at the device's own rates ({})\n\n{}{rest}",
            name(&self.name),
            name(&self.device),
            self.device_ms,
            self.times,
            self.attainable_ms,
            percent(self.attainable_ms / self.device_ms.max(f64::MIN_POSITIVE)),
            columns.text(),
        )
    }
}

/// The roofline as SVG: arithmetic intensity against achieved rate, both on logarithmic axes.
pub fn plot(answer: &Answer, spec: &DeviceSpec) -> String {
    // What takes no time would only stretch the axes.
    let least = PLOTTED * answer.device_ms * 1e3;
    let counted = || answer.kernels.iter().filter(|row| row.flops > 0 && row.time_us >= least);
    let least = counted().map(|row| row.intensity).fold(0.05, f64::min);
    let most = counted().map(|row| row.intensity).fold(1e3, f64::max) * 2.0;
    let mut plots: Vec<Plot> = Vec::new();
    let peaks = [
        ("fp32", spec.peak.f32_tflop_s, "#aaaaaa"),
        ("TF32", spec.peak.tf32_tflop_s, "#666666"),
        ("bf16", spec.peak.bf16_tflop_s, "#000000"),
    ];
    for (name, peak, colour) in peaks.into_iter().filter(|(_, peak, _)| *peak > 0.0) {
        let ridge = peak * 1e3 / spec.memory.rate_gb_s;
        let slope = |x: f64| (x, (x * spec.memory.rate_gb_s / 1e3).min(peak));
        let line = LinePlot::new().with_data([slope(least), slope(ridge), slope(most.max(ridge))]);
        plots.push(Plot::Line(line.with_color(colour).with_stroke_width(1.0).with_legend(name)));
    }
    let mut families: Vec<&str> = Vec::new();
    for row in counted() {
        if !families.contains(&row.family) {
            families.push(row.family);
        }
    }
    for (at, family) in families.iter().enumerate() {
        let of_family = counted().filter(|row| row.family == *family);
        let points: Vec<(f64, f64)> = of_family.map(|row| (row.intensity, row.tflop_s)).collect();
        let colour = COLOURS[at.min(COLOURS.len() - 1)];
        plots.push(Plot::Scatter(
            ScatterPlot::new().with_data(points).with_color(colour).with_legend(*family),
        ));
    }
    let layout = Layout::auto_from_plots(&plots)
        .with_title(format!("{} on {}, {} times", answer.name, spec.name, answer.times))
        .with_x_label("arithmetic intensity, flop/byte")
        .with_y_label("TFLOP/s")
        .with_log_scale();
    SvgBackend.render_scene(&render_multiple(plots, layout))
}
