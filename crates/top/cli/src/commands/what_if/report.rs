//! A step before and after a change.

use serde_json::json;
use steptime_answers::{WhatIfReport, what_if::Side};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{grouped, ms, percent};
use crate::report::sides::sides;
use crate::report::width::{prose, shorten, width, wrapped};
use crate::report::{doubts, memory};

/// Returns the answer as text.
pub fn text(answer: &WhatIfReport) -> String {
    let device = name(answer.device.as_deref().unwrap_or("an unnamed device"));
    let mut text = format!("{}\n", shorten(&format!("{} on {device}", name(&answer.title)), width()));
    let faster = answer.speedup >= 1.0;
    let times = if faster { answer.speedup } else { 1.0 / answer.speedup };
    let words = if faster { "as fast" } else { "as long" };
    let [low, high] = answer.after.interval_ms;
    text += &format!(
        "step {} to {} ms, {times:.2} times {words}; {:.0} % interval {} to {} ms\n",
        ms(answer.before.step_ms),
        ms(answer.after.step_ms),
        100.0 * answer.interval_level,
        ms(low),
        ms(high)
    );
    text += &rates(&answer.before, &answer.after);
    text += &doubts::text(&answer.doubts);
    text += &format!("\n{}\n", sides(&answer.before, &answer.after, ["before", "after"]).text());
    for transform in &answer.transforms {
        let counts =
            [(transform.removed, "removed"), (transform.inserted, "put in"), (transform.changed, "changed")];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let counts = if counts.is_empty() { String::new() } else { format!(" (ops: {})", counts.join(", ")) };
        let line = format!("{}: {}{counts}", transform.name, transform.why.join("; "));
        text += &format!("{}\n", wrapped(&line, prose(), 2));
    }
    if let (Some(before), Some(after)) = (&answer.before.peak_mb, &answer.after.peak_mb) {
        text += &format!("{}\n", wrapped(&memory::both(before, after), prose(), 2));
    }
    let times = &answer.kernel_times;
    text + &format!(
        "kernel times: {} measured, {} measured and scaled by a model, {} from a model\n",
        percent(times.measured),
        percent(times.scaled),
        percent(times.modelled)
    )
}

/// Returns the parts of the step before and after as CSV.
pub fn csv(answer: &WhatIfReport) -> Table {
    let mut table = Table::new("part before_ms after_ms");
    let mut row = |part: &str, ms: [f64; 2]| {
        table.row(&json!({"part": part, "before_ms": ms[0], "after_ms": ms[1]}));
    };
    let (before, after) = (&answer.before, &answer.after);
    row("step", [before.step_ms, after.step_ms]);
    row("active", [before.active_ms, after.active_ms]);
    for ((cause, was), (_, is)) in before.idle_ms.iter().zip(&after.idle_ms) {
        row(&format!("idle {cause}"), [*was, *is]);
    }
    table
}

/// Returns the samples per second before and after, if known.
fn rates(before: &Side, after: &Side) -> String {
    let said = |side: &Side| side.samples_per_s.map(|rate| grouped(rate.round() as u64));
    match (said(before), said(after)) {
        (Some(before), Some(after)) => format!("{before} to {after} samples/s\n"),
        (None, Some(after)) => format!("{after} samples/s\n"),
        _ => String::new(),
    }
}
