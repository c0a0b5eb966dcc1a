//! The contents of an input, as tables.

use serde_json::json;
use steptime_answers::{
    InspectReport,
    coverage::GraphCoverage,
    inspect::{Op, Rank, Stream, Thread},
};

use super::{execution_report, overheads_report};
use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{self, counted, grouped, ms, percent};
use crate::report::job;
use crate::report::table::Columns;
use crate::report::width::{apart, prose, width, wrapped};

/// Number of ops and of kernels to show.
const ROWS: usize = 12;

/// Returns the answer as text.
pub fn text(answer: &InspectReport) -> String {
    let mut text = String::new();
    let mut section = |part: String| {
        if !part.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
        }
    };
    if answer.ranks.len() > 1 {
        section(ranks(&answer.ranks).text());
        let job = answer.job.as_ref().map(job::recorded);
        section(job.unwrap_or_else(|| answer.not_one_job.as_deref().map(job::mismatch).unwrap_or_default()));
    }
    section(headline(answer));
    if answer.steps.is_some() {
        section(tracks(answer));
        section(ops(answer));
        section(kernels(answer));
        section(overheads_report::text(&answer.overheads));
        section(answer.coverage.as_ref().map(coverage).unwrap_or_default());
    }
    section(answer.execution.as_ref().map(execution_report::text).unwrap_or_default());
    section(notes(answer));
    text
}

/// Returns the ops and kernels of the step as CSV.
pub fn csv(answer: &InspectReport) -> Table {
    let mut table = Table::new("table name count host_ms device_ms");
    for op in &answer.ops {
        table.row_with(&json!({"table": "op"}), op);
    }
    for kernel in &answer.kernels {
        table.row_with(&json!({"table": "kernel"}), kernel);
    }
    table
}

fn ranks(ranks: &[Rank]) -> Columns {
    Columns::from_rows(
        &[
            (">rank", |rank: &Rank| or_dash(rank.rank.map(|rank| rank.to_string()))),
            ("~name", |rank| rank.name.clone()),
            (">steps", |rank| or_dash(rank.steps.map(|steps| grouped(steps.count as u64)))),
            (">period ms", |rank| or_dash(rank.period_ms.map(ms))),
            (">active ms", |rank| or_dash(rank.active_ms.map(ms))),
            (">host ops", |rank| grouped(rank.host_ops as u64)),
            (">activities", |rank| grouped(rank.activities as u64)),
            ("?>ET nodes", |rank| grouped(rank.nodes as u64)),
        ],
        ranks,
    )
}

fn headline(answer: &InspectReport) -> String {
    let mut text = answer.title.clone();
    if let Some(rank) = answer.rank {
        text.push_str(&format!(", rank {rank}"));
    }
    if let Some(device) = &answer.device {
        text.push_str(&format!(" on {device}"));
    }
    if let Some(batch) = answer.batch {
        text.push_str(&format!(", batch {}", grouped(batch)));
    }
    if let Some(torch) = &answer.torch {
        text.push_str(&format!(", PyTorch {torch}"));
    }
    text = wrapped(&name(&text), width(), 2) + "\n";
    let Some(steps) = answer.steps else { return text };
    let found = match steps.source {
        "marked" => ", marked by the profiler",
        "repeated" => ", found by repetition",
        _ => ": the whole trace",
    };
    let period = answer.period_ms.map(|period| format!("median period {} ms (profiled)", ms(period)));
    let active = answer.active_ms.map(|active| format!("device active {} ms", ms(active)));
    let phrases = [
        format!("{}{found}", counted(steps.count, "step")),
        period.unwrap_or_default(),
        active.unwrap_or_default(),
    ];
    text.push_str(&apart(&phrases, width()));
    text.push('\n');
    if let Some(step) = answer.measured_step_ms {
        text.push_str(&format!("un-profiled step {} ms, from meta.json\n", ms(step)));
    }
    text
}

fn tracks(answer: &InspectReport) -> String {
    let threads = Columns::from_rows(
        &[
            ("host thread", |thread: &Thread| thread.tid.to_string()),
            ("role", |thread| thread.role.to_owned()),
            (">ops", |thread| grouped(thread.ops as u64)),
            (">calls", |thread| grouped(thread.calls as u64)),
            (">busy ms", |thread| ms(thread.busy_ms)),
        ],
        &answer.threads,
    );
    let streams = Columns::from_rows(
        &[
            ("stream", |stream: &Stream| format!("device {} stream {}", stream.device, stream.stream)),
            (">kernels", |stream| grouped(stream.kernels as u64)),
            (">copies", |stream| grouped(stream.copies as u64)),
            (">memsets", |stream| grouped(stream.memsets as u64)),
            (">busy ms", |stream| ms(stream.busy_ms)),
        ],
        &answer.streams,
    );
    let mut text = threads.text();
    if !answer.streams.is_empty() {
        text.push('\n');
        text.push_str(&streams.text());
    }
    text
}

fn ops(answer: &InspectReport) -> String {
    let columns = Columns::from_rows(
        &[
            ("~op (top-level, a step)", |op: &Op| format::op(&op.name).to_owned()),
            (">count", |op| grouped(op.count as u64)),
            (">host ms", |op| ms(op.host_ms)),
            (">device ms", |op| ms(op.device_ms)),
        ],
        answer.ops.iter().take(ROWS),
    );
    columns.text() + &more(answer.ops.len(), "op name")
}

fn kernels(answer: &InspectReport) -> String {
    if answer.kernels.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new(&["~kernel (a step)", ">count", ">device ms"]);
    for kernel in answer.kernels.iter().take(ROWS) {
        columns.row([format::kernel(&kernel.name), grouped(kernel.count as u64), ms(kernel.device_ms)]);
    }
    columns.text() + &more(answer.kernels.len(), "kernel")
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}

fn more(all: usize, what: &str) -> String {
    match all.saturating_sub(ROWS) {
        0 => String::new(),
        rest => format!(" and {} more: --json has all\n", counted(rest, what)),
    }
}

fn coverage(coverage: &GraphCoverage) -> String {
    let mut parts = vec![
        format!(
            "{} of {} launches in an op",
            percent(coverage.launches_attributed_share),
            grouped(coverage.launches as u64)
        ),
        format!(
            "{} of {} device activities linked to their launch",
            percent(coverage.activities_linked_share),
            grouped(coverage.activities as u64)
        ),
        format!("{} of {} steps alike", coverage.steps_alike, coverage.steps),
        format!("{} of host events matched", percent(coverage.marks_matched_permille as f64 / 1000.0)),
    ];
    let counts = [
        (coverage.launches_outside, "launches outside any op"),
        (coverage.activities_before_steps, "activities launched before the first step"),
        (coverage.steps_of_warm_up, "steps at the beginning left out as warm-up"),
        (coverage.steps_incomplete, "steps left out whose kernels the profiler lost"),
        (coverage.launches_lost, "launches whose kernel the profiler lost"),
        (coverage.clamped, "events cut to fit the one around them"),
        (coverage.across_steps, "events across steps left out"),
        (coverage.stream_waits, "stream waits"),
        (coverage.waits_inferred, "of them inferred"),
        (coverage.waits_refuted, "refuted by the device's times"),
        (coverage.hand_offs, "hand-offs between threads"),
    ];
    parts.extend(
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(n, what)| format!("{} {what}", grouped(*n as u64))),
    );
    wrapped(&format!("coverage: {}", parts.join(", ")), prose(), 2) + "\n"
}

fn notes(answer: &InspectReport) -> String {
    let mut text = String::new();
    for note in &answer.notes {
        let sign = if note.repaired { "!" } else { "·" };
        let line = format!("{sign} {} trace: {} {}", note.of, grouped(note.count), note.what);
        text.push_str(&wrapped(&line, prose(), 2));
        text.push('\n');
    }
    for file in &answer.ignored {
        text.push_str(&wrapped(&format!("· {} is not a trace and was left out", name(file)), prose(), 2));
        text.push('\n');
    }
    for warning in &answer.warnings {
        text.push_str(&wrapped(&format!("! {warning}"), prose(), 2));
        text.push('\n');
    }
    text
}
