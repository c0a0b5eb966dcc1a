//! Answers as tables for other programs: CSV with a line of column names, units in the names. An empty cell is a value
//! that is not known or has no meaning there.

use serde::Serialize;
use steptime::answers::inspect::Inspected;
use steptime::answers::what_if::Side;
use steptime::answers::{
    Changed, Chosen, CollectivesPriced, Compared, DeviceListed, Difference, Explained, Gridded,
    KernelsPredicted, PeakMemory, Placed, PlannedJobs, Predicted, PredictedJob, Replayed, Roofed, Scaled,
    TableScored, Validated, ValidatedJobs,
};
use steptime::device::tables::TableRow;

use super::compare::{doubts, limit};
use super::roofline::shapes;

/// Lines of cells below their names.
pub struct Table(csv::Writer<Vec<u8>>);

impl Table {
    /// A table without rows; `names` of its columns.
    pub(super) fn new(names: &[&str]) -> Table {
        let mut table = Table::without_names();
        let written = table.0.write_record(names);
        debug_assert!(written.is_ok(), "a vector in memory takes all that is written");
        table
    }

    fn without_names() -> Table {
        Table(csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new()))
    }

    pub(super) fn row(&mut self, cells: impl Serialize) {
        let written = self.0.serialize(cells);
        debug_assert!(written.is_ok(), "as many cells as names: {written:?}");
    }

    /// All of it. Text that a spreadsheet would compute has a `'` before it.
    pub fn text(self) -> String {
        let bytes = self.0.into_inner().unwrap_or_default();
        let mut read = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&bytes[..]);
        let mut out = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        for record in read.records().flatten() {
            let written = out.write_record(record.iter().map(plain));
            debug_assert!(written.is_ok(), "a vector in memory takes all that is written");
        }
        String::from_utf8_lossy(&out.into_inner().unwrap_or_default()).into_owned()
    }
}

/// A cell that is text or a number to every program: one that begins as a formula does and is no number is marked as text.
fn plain(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if is_formula { format!("'{cell}") } else { cell.to_owned() }
}

/// Ops, kernels and families of kernels of a predicted step.
pub fn predicted(answer: &Predicted) -> Table {
    let names = ["table", "name", "count", "host_ms", "device_ms", "critical_ms", "slack_ms"];
    let mut table = Table::new(&names);
    let none: Option<f64> = None;
    for op in answer.ops.iter().flatten() {
        table.row(("op", &op.name, op.count, op.host_ms, op.device_ms, op.critical_ms, op.slack_ms));
    }
    for kernel in answer.kernels_by_name.iter().flatten() {
        table.row(("kernel", &kernel.name, kernel.count, none, kernel.device_ms, none, none));
    }
    for family in answer.families.iter().flatten() {
        table.row(("family", family.family, family.count, none, family.device_ms, none, none));
    }
    table
}

/// Ranks and collectives of a predicted job.
pub fn predicted_job(answer: &PredictedJob) -> Table {
    let names = [
        "table",
        "rank",
        "name",
        "bytes",
        "computes_ms",
        "moves_ms",
        "waits_ms",
        "idles_ms",
        "hidden_ms",
        "alone_ms",
        "critical_ms",
        "last",
    ];
    let mut table = Table::new(&names);
    let none: Option<f64> = None;
    for rank in &answer.ranks {
        let parts = &rank.parts;
        table.row((
            ("rank", rank.rank, "", None::<u64>),
            (parts.computes_ms, parts.moves_ms, parts.waits_ms, parts.idles_ms, parts.hidden_ms),
            (rank.alone_ms, rank.critical_ms, rank.last),
        ));
    }
    for met in &answer.collectives {
        for (rank, waits) in met.what.ranks.iter().zip(&met.waits_ms) {
            table.row((
                ("collective", rank, met.what.op, met.what.bytes),
                (none, met.moves_ms, waits, none, none),
                (none, none, usize::from(met.last == *rank)),
            ));
        }
    }
    table
}

/// Collectives, priced.
pub fn collectives(answer: &CollectivesPriced) -> Table {
    let names =
        ["op", "ranks", "bytes", "time_us", "low_us", "high_us", "bus_gbs", "in_step_us", "measured_us"];
    let mut table = Table::new(&names);
    for row in &answer.rows {
        let [low, high] = row.interval_us;
        table.row((
            (row.op, row.ranks, row.bytes, row.time_us, low),
            (high, row.bus_gbs, row.in_step_us, row.measured_us),
        ));
    }
    table
}

/// Tables and where they lie.
pub fn placed(answer: &Placed) -> Table {
    let mut table =
        Table::new(&["table", "rows", "columns", "lookups", "cut", "gpus", "cached_rows", "misses"]);
    for row in &answer.tables {
        let gpus: Vec<String> = row.gpus.iter().map(u32::to_string).collect();
        let (held, misses) = (row.cached.map(|own| own.rows), row.cached.map(|own| own.misses));
        let place = (row.table, row.rows, row.columns, row.lookups, row.cut, gpus.join(" "), held, misses);
        table.row(place);
    }
    table
}

/// A model on several numbers of GPUs.
pub fn scaled(answer: &Scaled) -> Table {
    let names = [
        "gpus",
        "nodes",
        "batch",
        "step_ms",
        "low_ms",
        "high_ms",
        "samples_per_s",
        "efficiency",
        "exposed_ms",
        "cost",
    ];
    let mut table = Table::new(&names);
    for row in &answer.rows {
        let [low, high] = row.interval_ms;
        table.row((
            (row.gpus, row.nodes, row.batch, row.step_ms, low, high),
            (row.samples_per_s, row.efficiency, row.exposed_ms, row.cost),
        ));
    }
    table
}

/// Jobs, measured, predicted from their descriptions, and as a planner has them.
pub fn planned_jobs(answer: &PlannedJobs) -> Table {
    let names = [
        "job",
        "model",
        "ranks",
        "measured_ms",
        "described_ms",
        "described_error",
        "planned_ms",
        "planned_error",
    ];
    let mut table = Table::new(&names);
    for row in &answer.jobs {
        table.row((
            (&row.name, &row.model, row.ranks, row.measured_ms),
            (row.described_ms, row.described_error, row.planned_ms, row.planned_error),
        ));
    }
    table
}

/// Jobs, measured and predicted.
pub fn validated_jobs(answer: &ValidatedJobs) -> Table {
    let names = [
        "job",
        "ranks",
        "measured_ms",
        "predicted_ms",
        "error",
        "low_ms",
        "high_ms",
        "slowest_alone_ms",
        "first_rank_ms",
        "replay_error",
    ];
    let mut table = Table::new(&names);
    for row in &answer.jobs {
        let [low, high] = row.interval_ms;
        table.row((
            (&row.name, row.ranks, row.measured_ms, row.predicted_ms, row.error),
            (low, high, row.slowest_alone_ms, row.first_rank_ms, row.replay_error),
        ));
    }
    table
}

/// A step before and after a change.
pub fn changed(answer: &Changed) -> Table {
    let names = ["part", "before_ms", "after_ms"];
    let mut table = Table::new(&names);
    let (before, after) = (&answer.before, &answer.after);
    table.row(("step", before.step_ms, after.step_ms));
    table.row(("active", before.active_ms, after.active_ms));
    for ((cause, was), (_, is)) in before.idle_ms.iter().zip(&after.idle_ms) {
        table.row((format!("idle {cause}"), was, is));
    }
    table
}

/// A step on several GPUs, at the recorded batch and at the largest that fits; the best GPU first.
pub fn chosen(answer: &Chosen) -> Table {
    let names =
        ["gpu", "at", "batch", "step_ms", "low_ms", "high_ms", "samples_per_s", "peak_mb", "fits", "bound"];
    let more = ["saved_by_gpu", "of_first", "of_first_low", "of_first_high", "cost"];
    let names: Vec<&str> = names.into_iter().chain(more).collect();
    let mut table = Table::new(&names);
    for gpu in &answer.gpus {
        for (at, point) in [("recorded", Some(&gpu.recorded)), ("largest", gpu.largest.as_ref())] {
            let Some(point) = point else { continue };
            let ([low, high], ratio) = (point.interval_ms, point.of_first);
            let peak = point.peak_mb.as_ref().map(PeakMemory::total);
            table.row((
                (&gpu.name, at, point.batch, point.step_ms, low, high),
                (point.samples_per_s, peak, point.fits, point.bound, point.saved_by_gpu),
                (ratio.map(|of| of.times), ratio.map(|of| of.interval[0]), ratio.map(|of| of.interval[1])),
                point.cost,
            ));
        }
    }
    table
}

/// The best points of a grid.
pub fn gridded(answer: &Gridded) -> Table {
    let names = ["point", "change", "step_ms", "samples_per_s", "peak_mb", "fits"];
    let mut table = Table::new(&names);
    for best in &answer.best {
        let keys: Vec<String> = best.keys.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let row = &best.row;
        table.row((row.point, keys.join("; "), row.step_ms, row.samples_per_s, row.peak_mb, row.fits));
    }
    table
}

/// Two steps: their parts, ops and kernels, with the largest differences first.
pub fn differing(answer: &Difference) -> Table {
    let names = ["table", "name", "nth_a", "nth_b", "count_a", "count_b", "host_ms_a", "host_ms_b"];
    let names: Vec<&str> =
        names.into_iter().chain(["device_ms_a", "device_ms_b", "critical_ms_a", "critical_ms_b"]).collect();
    let mut table = Table::new(&names);
    let (no_count, no_time) = ([None::<usize>; 2], [None::<f64>; 2]);
    let (a, b) = (&answer.a.step, &answer.b.step);
    table.row(("step", "step", no_count, no_count, no_time, no_time, [Some(a.step_ms), Some(b.step_ms)]));
    table.row((
        "step",
        "active",
        no_count,
        no_count,
        no_time,
        [Some(a.active_ms), Some(b.active_ms)],
        no_time,
    ));
    for ((cause, was), (_, is)) in a.idle_ms.iter().zip(&b.idle_ms) {
        table.row(("idle", cause, no_count, no_count, no_time, [Some(*was), Some(*is)], no_time));
    }
    for (what, pairs) in [("annotation", &answer.annotations), ("op", &answer.ops)] {
        for pair in pairs {
            table.row((what, &pair.name, pair.nth, no_count, pair.host_ms, pair.device_ms, pair.critical_ms));
        }
    }
    for pair in &answer.kernels {
        table.row(("kernel", &pair.name, no_count, pair.count, no_time, pair.device_ms, no_time));
    }
    table
}

/// Changes of a step, the best first; the last row has several together where that is better.
pub fn explained(answer: &Explained) -> Table {
    let names = ["change", "saves_ms", "step_ms", "low_ms", "high_ms", "active_ms", "effort", "risk"];
    let mut table = Table::new(&names);
    let mut row = |name: &str, saves: f64, after: &Side, words: [&str; 2]| {
        let [low, high] = after.interval_ms;
        table.row((name, saves, after.step_ms, low, high, after.active_ms, words[0], words[1]));
    };
    for found in &answer.suggestions {
        row(found.name, found.saves_ms, &found.after, [found.effort, found.risk]);
    }
    if let Some(all) = &answer.together {
        row(&all.names.join(" + "), all.saves_ms, &all.after, ["", ""]);
    }
    table
}

/// A step on several GPUs.
pub fn compared(answer: &Compared) -> Table {
    let names = [
        "device",
        "gpu",
        "step_ms",
        "low_ms",
        "high_ms",
        "active_ms",
        "idle_ms",
        "limited_by",
        "limit_share",
        "fitted_share",
        "estimate",
        "doubts",
    ];
    let mut table = Table::new(&names);
    for row in &answer.predictions {
        let [low, high] = row.interval_ms.map_or([None; 2], |sides| sides.map(Some));
        let idle = row.active_ms.map(|active| row.step_ms - active);
        let fitted = row.kernel_coverage.map(|coverage| coverage.fitted);
        let (place, share) = limit(row).unzip();
        let known = row.doubts.iter().all(|doubt| !doubt.no_estimate);
        let cells = (&row.kernels, &row.device, row.step_ms, low, high, row.active_ms, idle, place, share);
        table.row((cells, fitted, known, doubts(row)));
    }
    table
}

/// Kernels under their roof.
pub fn roofed(answer: &Roofed) -> Table {
    let names = [
        "op",
        "family",
        "count",
        "time_us",
        "bytes",
        "flops",
        "intensity_flop_per_byte",
        "gb_s",
        "tflop_s",
        "roof_share",
        "bound",
        "shapes",
        "kernel",
    ];
    let mut table = Table::new(&names);
    for row in &answer.kernels {
        let size = (row.time_us, row.bytes, row.flops, row.intensity);
        let rates = (row.gb_s, row.tflop_s, row.share, row.bound);
        table.row((&row.op, row.family, row.count, size, rates, shapes(&row.shapes), &row.kernel));
    }
    table
}

/// The names of the columns of [`kernels`].
pub fn kernels_names() -> Table {
    let names = ["query", "op", "family", "time_us", "low_us", "high_us", "source", "extrapolated", "error"];
    Table::new(&names)
}

/// The kernels of one query, which is the one on this line of the input.
pub fn kernels(line: usize, answer: &KernelsPredicted) -> Table {
    let mut table = Table::without_names();
    if let Some(error) = &answer.error {
        table.row((line, ["", "", "", "", "", "", ""], error));
    }
    for row in &answer.kernels {
        let [low, high] = row.interval_us;
        table.row((line, &row.op, row.family, row.time_us, low, high, row.source, row.extrapolated, ""));
    }
    table
}

/// Recordings, measured and predicted.
pub fn validated(answer: &Validated) -> Table {
    let names = [
        "recording",
        "architecture",
        "measured_ms",
        "predicted_ms",
        "error",
        "low_ms",
        "high_ms",
        "inside",
        "in_sample",
        "paper_ms",
        "paper_published_ms",
        "kernel_sum_ms",
        "active_measured_ms",
        "active_predicted_ms",
        "profiled_ms",
        "replayed_ms",
        "replay_error",
        "host_slowness",
    ];
    let mut table = Table::new(&names);
    for row in &answer.rows {
        let step = (&row.name, &row.architecture, row.measured_ms, row.predicted_ms, row.error);
        let interval = (row.interval_ms, row.inside, row.in_sample);
        let others = (row.paper_ms, row.paper_published_ms, row.kernel_sum_ms);
        let active = (row.active_measured_ms, row.active_predicted_ms);
        let replay = (row.profiled_ms, row.replayed_ms, row.replay_error);
        table.row((step, interval, others, active, replay, row.host_slowness));
    }
    table
}

/// Recordings and their replays.
pub fn replayed(answer: &Replayed) -> Table {
    let names = [
        "recording",
        "steps",
        "step_source",
        "recorded_ms",
        "typical_ms",
        "error",
        "each_error",
        "active_recorded_ms",
        "active_typical_ms",
        "active_error",
        "single_step",
        "doubt",
        "failed",
    ];
    let mut table = Table::new(&names);
    for row in &answer.rows {
        let replay = row.replay.as_ref();
        let of = |value: fn(&steptime::answers::replay::ReplayMeasured) -> f64| replay.map(value);
        let step = (of(|r| r.recorded_ms), of(|r| r.typical_ms), of(|r| r.error), of(|r| r.each_error));
        let active = (of(|r| r.active_recorded_ms), of(|r| r.active_typical_ms), of(|r| r.active_error));
        let single = replay.map(|replay| replay.single_step);
        let doubt = row.doubt.as_ref().map(|doubt| doubt.kind);
        table.row((&row.name, row.steps, row.step_source, step, active, single, doubt, &row.failed));
    }
    table
}

/// Ops and kernels of a recorded step.
pub fn inspected(answer: &Inspected) -> Table {
    let mut table = Table::new(&["table", "name", "count", "host_ms", "device_ms"]);
    for op in &answer.ops {
        table.row(("op", &op.name, op.count, op.host_ms, op.device_ms));
    }
    for kernel in &answer.kernels {
        table.row(("kernel", &kernel.name, kernel.count, None::<f64>, kernel.device_ms));
    }
    table
}

/// Rows of tables, predicted and measured.
pub fn table_rows(rows: &[TableRow]) -> Table {
    let names = [
        "device",
        "kind",
        "family",
        "op",
        "dims",
        "measured_us",
        "predicted_us",
        "low_us",
        "high_us",
        "source",
    ];
    let mut table = Table::new(&names);
    for row in rows {
        let what = (&row.device, &row.group, row.family, &row.op, &row.dims);
        table.row((what, row.measured_us, row.predicted_us, row.interval_us, row.source));
    }
    table
}

/// Scores of tables.
pub fn table_scores(answer: &[TableScored]) -> Table {
    let names =
        ["device", "kind", "rows", "gmae", "mean", "p90", "total", "inside", "half_width", "roofline"];
    let mut table = Table::new(&names);
    for row in answer {
        let errors = (row.gmae, row.mean, row.p90, row.total, row.inside, row.half_width, row.roofline);
        table.row((&row.device, &row.kind, row.rows, errors));
    }
    table
}

/// Device profiles.
pub fn devices(answer: &[DeviceListed]) -> Table {
    let names = [
        "name",
        "device",
        "architecture",
        "memory_gb",
        "memory_gb_s",
        "f32_tflop_s",
        "bf16_tflop_s",
        "fitted_families",
    ];
    let mut table = Table::new(&names);
    for row in answer {
        let rates = (row.memory_gb, row.memory_gb_s, row.f32_tflop_s, row.bf16_tflop_s);
        table.row((&row.name, &row.device, &row.architecture, rates, row.families));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_hold_commas_and_quotes_come_back() {
        let mut table = Table::new(&["name", "count"]);
        table.row(("a<b, \"c\">", 3));
        table.row((None::<f64>, "x\ny"));
        let text = table.text();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!(rows[0], vec!["a<b, \"c\">", "3"]);
        assert_eq!(rows[1], vec!["", "x\ny"]);
    }

    #[test]
    fn no_cell_is_a_formula() {
        let mut table = Table::new(&["name", "ms"]);
        for (name, ms) in [("=1+1", -0.5), ("@a", 1e-7), ("-x", 2.0), ("a, \"b\"", 3.0), ("-1", 4.0)] {
            table.row((name, ms));
        }
        assert_eq!(table.text(), "name,ms\n'=1+1,-0.5\n'@a,1e-7\n'-x,2.0\n\"a, \"\"b\"\"\",3.0\n-1,4.0\n");
    }
}
