//! Steps: predicted, changed, compared, measured.

use steptime_answers::{
    ChooseReport, CompareReport, Difference, ExplainReport, GridReport, PeakMemory, PredictionReport,
    ReplayReport, RooflineReport, ValidationReport, WhatIfReport, inspect::InspectReport, what_if::Side,
};

use super::Table;
use crate::report::compare::{doubts, limit};
use crate::report::roofline::shapes;

/// Ops, kernels and families of kernels of a predicted step.
pub fn predicted(answer: &PredictionReport) -> Table {
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

/// A step before and after a change.
pub fn changed(answer: &WhatIfReport) -> Table {
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
pub fn chosen(answer: &ChooseReport) -> Table {
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
pub fn gridded(answer: &GridReport) -> Table {
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

/// Changes of a step, the best first; the last row has several together if that is better.
pub fn explained(answer: &ExplainReport) -> Table {
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
pub fn compared(answer: &CompareReport) -> Table {
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

/// Roofline of kernels.
pub fn roofed(answer: &RooflineReport) -> Table {
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

/// Recordings, measured and predicted.
pub fn validated(answer: &ValidationReport) -> Table {
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
pub fn replayed(answer: &ReplayReport) -> Table {
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
        let of = |value: fn(&steptime_answers::replay::ReplayEntry) -> f64| replay.map(value);
        let step = (of(|r| r.recorded_ms), of(|r| r.typical_ms), of(|r| r.error), of(|r| r.each_error));
        let active = (of(|r| r.active_recorded_ms), of(|r| r.active_typical_ms), of(|r| r.active_error));
        let single = replay.map(|replay| replay.single_step);
        let doubt = row.doubt.as_ref().map(|doubt| doubt.kind);
        table.row((&row.name, row.steps, row.step_source, step, active, single, doubt, &row.failed));
    }
    table
}

/// Ops and kernels of a recorded step.
pub fn inspected(answer: &InspectReport) -> Table {
    let mut table = Table::new(&["table", "name", "count", "host_ms", "device_ms"]);
    for op in &answer.ops {
        table.row(("op", &op.name, op.count, op.host_ms, op.device_ms));
    }
    for kernel in &answer.kernels {
        table.row(("kernel", &kernel.name, kernel.count, None::<f64>, kernel.device_ms));
    }
    table
}
