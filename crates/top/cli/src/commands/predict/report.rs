//! A prediction on one screen.

use serde_json::json;
use steptime_answers::{
    PredictionReport,
    coverage::GraphCoverage,
    critical_path::{Run, condensed, runs},
    device_time_sources::FamilyTime,
    predict::Piece,
};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{self, counted, grouped, ms, percent};
use crate::report::sides::cause_name;
use crate::report::table::Columns;
use crate::report::width::{apart, prose, shorten, text_width, width, wrapped};
use crate::report::{doubts, memory};

/// Lines of a screen.
const LINES: usize = 40;
/// Number of ops to show, without and with kernel families.
const OPS: (usize, usize) = (10, 6);
/// Minimum number of ops to show.
const FEWEST_OPS: usize = 2;
/// Minimum and maximum number of kernel families to show.
const FAMILIES: (usize, usize) = (1, 5);
/// Width of the critical path's columns to the left of the names.
const LEFT_OF_NAMES: usize = 48;
/// Maximum and minimum number of stretches of the critical path to show.
const STRETCHES: (usize, usize) = (8, 3);

/// Returns the answer as text. Doubts reduce the number of kernel families on the screen.
pub fn text(answer: &PredictionReport) -> String {
    let text = screen(answer, FAMILIES.1);
    match text.lines().count().saturating_sub(LINES) {
        0 => text,
        over => screen(answer, FAMILIES.1.saturating_sub(over).max(FAMILIES.0)),
    }
}

/// Returns the ops, kernels and families of kernels as CSV.
pub fn csv(answer: &PredictionReport) -> Table {
    let mut table = Table::new("table name count host_ms device_ms critical_ms slack_ms");
    for op in answer.ops.iter().flatten() {
        table.row_with(&json!({"table": "op"}), op);
    }
    for kernel in answer.kernels_by_name.iter().flatten() {
        table.row_with(&json!({"table": "kernel"}), kernel);
    }
    for family in answer.families.iter().flatten() {
        table.row_with(&json!({"table": "family", "name": family.family}), family);
    }
    table
}

/// Returns the answer with at most `most` kernel families.
fn screen(answer: &PredictionReport, most: usize) -> String {
    let mut text = headline(answer);
    let below = below(answer);
    if answer.active_ms.is_some() {
        text.push('\n');
        text.push_str(&split(answer).text());
        text.push('\n');
        if let Some(families) = &answer.families {
            text.push_str(&kernels(&families[..families.len().min(most)], answer).text());
            text.push('\n');
        }
        // Around them are the heads of two tables, and two empty lines.
        let others = below.lines().count() + STRETCHES.1 + 4;
        text.push_str(&ops(answer, room(&text, others)).text());
        let others = below.lines().count() + 3;
        let stretches = room(&text, others).clamp(STRETCHES.1, STRETCHES.0);
        text.push('\n');
        text.push_str(&critical(answer, condensed(runs(path(answer)), stretches)).text());
    }
    text.push('\n');
    text.push_str(&below);
    text
}

/// Returns the number of lines left of a screen after a text and `others` lines.
fn room(text: &str, others: usize) -> usize {
    LINES.saturating_sub(text.lines().count() + others)
}

fn path(answer: &PredictionReport) -> &[Piece] {
    answer.critical_path.as_deref().unwrap_or_default()
}

fn headline(answer: &PredictionReport) -> String {
    let interval = answer.interval_ms.map_or_else(String::new, |[low, high]| {
        format!("{:.0} % interval {} to {} ms", 100.0 * answer.interval_level, ms(low), ms(high))
    });
    let known = !no_estimate(answer);
    let rate = match (answer.samples_per_s, answer.batch) {
        (Some(rate), Some(batch)) if known => {
            format!("{} samples/s at batch {}", grouped(rate.round() as u64), grouped(batch))
        }
        _ => String::new(),
    };
    let rank = answer.rank.map_or(String::new(), |rank| format!(", rank {rank}"));
    let device = name(answer.device.as_deref().unwrap_or("an unnamed device"));
    let source = answer.kernel_coverage.as_ref();
    let source = source.map_or_else(String::new, |c| paragraph("", &format!("kernel times: {}", c.text())));
    let peak = answer.peak_mb.as_ref().map_or_else(String::new, |peak| paragraph("", &memory::line(peak)));
    let doubts = doubts::text(&answer.doubts);
    format!(
        "{}\n{}\n{doubts}{}{source}{peak}",
        shorten(&format!("{}{rank} on {device}", name(&answer.title)), width()),
        apart(&[time(answer), interval, rate], width()),
        how(answer),
    )
}

/// Returns the method, host, kernels and process of the prediction.
fn how(answer: &PredictionReport) -> String {
    let times =
        answer.host_slower_than.as_ref().map_or_else(String::new, |than| format!(" x {}", than.times));
    let (host, kernels) = (shorten(&answer.host, 60), shorten(&answer.kernels, 40));
    let words = format!(
        "method {}, host {host}{times}, kernels {kernels}, process {}",
        answer.method, answer.process
    );
    paragraph("", &words)
}

/// Wraps sentences to lines of the report.
fn paragraph(sign: &str, words: &str) -> String {
    wrapped(&format!("{sign}{words}"), prose(), 2) + "\n"
}

/// Whether the answer is too doubtful for a single time.
fn no_estimate(answer: &PredictionReport) -> bool {
    answer.doubts.iter().any(|doubt| doubt.no_estimate)
}

/// Returns the step time, if it is known well enough for one number.
fn time(answer: &PredictionReport) -> String {
    if no_estimate(answer) { "step: no estimate".into() } else { format!("step {} ms", ms(answer.step_ms)) }
}

fn share(part: f64, answer: &PredictionReport) -> String {
    if answer.step_ms > 0.0 { percent(part / answer.step_ms) } else { "-".into() }
}

/// Returns the table of idle causes on the left, and phases on the right.
fn split(answer: &PredictionReport) -> Columns {
    let active = answer.active_ms.unwrap_or(0.0);
    let idle: f64 = answer.idle_ms.iter().map(|(_, time)| time).sum();
    let mut left = vec![
        ["active".to_owned(), ms(active), share(active, answer)],
        ["idle".to_owned(), ms(idle), share(idle, answer)],
    ];
    let devices = answer
        .devices
        .iter()
        .map(|row| [format!("· GPU {}", row.device), ms(row.active_ms), share(row.active_ms, answer)]);
    left.splice(1..1, devices);
    let causes = answer.idle_ms.iter().filter(|(_, time)| *time >= 0.0005);
    left.extend(
        causes.map(|(key, time)| [format!("· {}", cause_name(key)), ms(*time), share(*time, answer)]),
    );
    let phases = answer.phases.as_deref().unwrap_or_default();
    let mut right = phases.iter().map(|part| [part.name.clone(), ms(part.host_ms), ms(part.device_ms)]);
    let mut columns = Columns::new(&["device", ">ms", ">of step", "  ", "phase", ">host ms", ">device ms"]);
    let rows = left.len().max(phases.len());
    let mut left = left.into_iter();
    for _ in 0..rows {
        let [cause, time, part] = left.next().unwrap_or_default();
        let [phase, host, device] = right.next().unwrap_or_default();
        columns.row([cause, time, part, String::new(), phase, host, device]);
    }
    columns
}

/// Returns the table of kernel families, with their times and sources.
fn kernels(families: &[FamilyTime], answer: &PredictionReport) -> Columns {
    let mut columns = Columns::new(&["~kernels", ">count", ">device ms", ">of step", ">each x/÷", "source"]);
    for family in families {
        columns.row([
            family.family.to_owned(),
            grouped(family.count as u64),
            ms(family.device_ms),
            share(family.device_ms, answer),
            format::factor(family.half_width.exp()),
            family.source.to_owned(),
        ]);
    }
    columns
}

fn ops(answer: &PredictionReport, room: usize) -> Columns {
    let all = answer.ops.as_deref().unwrap_or_default();
    let most = if answer.families.is_some() { OPS.1 } else { OPS.0 };
    let shown = room.clamp(FEWEST_OPS, most);
    let mut columns = Columns::new(&["~op", ">count", ">host ms", ">device ms", ">critical ms", ">of step"]);
    for op in all.iter().take(shown) {
        columns.row([
            format::op(&op.name).to_owned(),
            grouped(op.count as u64),
            ms(op.host_ms),
            ms(op.device_ms),
            ms(op.critical_ms),
            share(op.critical_ms, answer),
        ]);
    }
    columns
}

fn critical(answer: &PredictionReport, runs: Vec<Run>) -> Columns {
    let mut columns = Columns::new(&["critical path", "phase", ">ms", ">of step", "mostly"]);
    for run in runs {
        let Some((place, phase)) = run.key() else { continue };
        let time = run.time.as_millis();
        columns.row([
            place.to_owned(),
            phase.name().to_owned(),
            ms(time),
            share(time, answer),
            mostly(&run.names()),
        ]);
    }
    columns
}

/// Returns as many of the first three names as fit, at least one.
fn mostly(names: &[&str]) -> String {
    let room = width().saturating_sub(LEFT_OF_NAMES);
    let mut text = names.first().map_or_else(String::new, |first| shorten(first, room));
    for next in names.iter().take(3).skip(1) {
        let longer = format!("{text}, {next}");
        if text_width(&longer) > room {
            break;
        }
        text = longer;
    }
    text
}

/// Returns the coverage of the recording; empty for a derived step.
fn below(answer: &PredictionReport) -> String {
    if answer.derived { String::new() } else { coverage(&answer.coverage, answer) }
}

fn coverage(coverage: &GraphCoverage, answer: &PredictionReport) -> String {
    let gaps = coverage.priced.as_ref().map_or(String::new(), |priced| {
        format!(
            "; host gaps: {} own, {} from the profile, {} unpriced",
            grouped(priced.own as u64),
            grouped(priced.profile as u64),
            grouped(priced.unpriced as u64),
        )
    });
    let words = format!(
        "coverage: {} of {} in an op, {} of {} linked, {} of {} alike{gaps}",
        percent(coverage.launches_attributed_share),
        counted(coverage.launches, "launch"),
        percent(coverage.activities_linked_share),
        counted(coverage.activities, "device activity"),
        coverage.steps_alike,
        counted(answer.steps.count, "step"),
    );
    paragraph("", &words)
}
