//! A prediction on one screen.

use super::format::{self, counted, grouped, ms, percent, shorten, wrapped};
use super::json_coverage::CoverageJson;
use super::json_device::FamilyTime;
use super::json_predict::{Answer, LEVEL};
use super::path::{Run, condensed};
use super::table::Columns;
use crate::output::name;

/// A screen.
const LINES: usize = 40;
/// Characters of a line.
const WIDTH: usize = 100;
/// Ops to show; fewer where there are kernel families too.
const OPS: (usize, usize) = (10, 6);
/// Kernel families to show.
const FAMILIES: usize = 6;
/// Stretches of the critical path to show, at most and at least.
const STRETCHES: (usize, usize) = (8, 3);

/// The answer as text; `path` is the critical path.
pub fn text(answer: &Answer, path: Vec<Run>) -> String {
    let mut text = headline(answer);
    if answer.active_ms.is_some() {
        text.push('\n');
        text.push_str(&split(answer).text());
        text.push('\n');
        if let Some(families) = &answer.families {
            text.push_str(&kernels(families, answer).text());
            text.push('\n');
        }
        text.push_str(&ops(answer).text());
    }
    let below = below(answer);
    if answer.active_ms.is_some() {
        let used = text.lines().count() + below.lines().count() + 3;
        let room = LINES.saturating_sub(used).clamp(STRETCHES.1, STRETCHES.0);
        text.push('\n');
        text.push_str(&critical(answer, condensed(path, room)).text());
    }
    text.push('\n');
    text.push_str(&below);
    text
}

fn headline(answer: &Answer) -> String {
    let interval = answer.interval_ms.map_or_else(String::new, |[low, high]| {
        format!("   {:.0} % interval {} to {} ms", 100.0 * LEVEL, ms(low), ms(high))
    });
    let known = !no_estimate(answer);
    let rate = match (answer.samples_per_s, answer.batch) {
        (Some(rate), Some(batch)) if known => {
            format!("   {} samples/s at batch {}", grouped(rate.round() as u64), grouped(batch))
        }
        _ => String::new(),
    };
    let rank = answer.rank.map_or(String::new(), |rank| format!(", rank {rank}"));
    let times =
        answer.host_slower_than.as_ref().map_or_else(String::new, |than| format!(" x {}", than.times));
    let source = answer.kernel_coverage.as_ref();
    let source = source.map_or_else(String::new, |c| {
        format!("{}\n", wrapped(&format!("kernel times: {}", c.text()), WIDTH, 2))
    });
    let doubts: String =
        answer.doubts.iter().map(|d| format!("{}\n", wrapped(&format!("! {}", d.text), WIDTH, 2))).collect();
    format!(
        "{}{rank} on {}\n{}{interval}{rate}\n{doubts}method {}, host {}{times}, kernels {}, process {}\n{source}",
        name(&answer.name),
        name(answer.device.as_deref().unwrap_or("an unnamed device")),
        time(answer),
        answer.method,
        shorten(&answer.host, 60),
        shorten(&answer.kernels, 40),
        answer.process,
    )
}

/// Whether a single time would be a guess.
fn no_estimate(answer: &Answer) -> bool {
    answer.doubts.iter().any(|doubt| doubt.no_estimate)
}

/// The step's time, where it is known well enough to be printed as one number.
fn time(answer: &Answer) -> String {
    if no_estimate(answer) { "step: no estimate".into() } else { format!("step {} ms", ms(answer.step_ms)) }
}

fn share(part: f64, answer: &Answer) -> String {
    if answer.step_ms > 0.0 { percent(part / answer.step_ms) } else { "-".into() }
}

/// On the left why the device is idle, on the right where the phases are.
fn split(answer: &Answer) -> Columns {
    let active = answer.active_ms.unwrap_or(0.0);
    let idle: f64 = answer.idle_ms.iter().map(|(_, time)| time).sum();
    let mut left = vec![
        ["active".to_owned(), ms(active), share(active, answer)],
        ["idle".to_owned(), ms(idle), share(idle, answer)],
    ];
    let causes = answer.idle_ms.iter().zip(&answer.idle_names).filter(|((_, time), _)| *time >= 0.0005);
    left.extend(causes.map(|((_, time), name)| [format!("· {name}"), ms(*time), share(*time, answer)]));
    let phases = answer.phases.as_deref().unwrap_or_default();
    let mut right = phases.iter().map(|part| [part.name.clone(), ms(part.host_ms), ms(part.device_ms)]);
    let mut columns =
        Columns::new(&["device", ">ms", ">of step", "     ", "phase", ">host ms", ">device ms"]);
    let rows = left.len().max(phases.len());
    let mut left = left.into_iter();
    for _ in 0..rows {
        let [cause, time, part] = left.next().unwrap_or_default();
        let [phase, host, device] = right.next().unwrap_or_default();
        columns.row([cause, time, part, String::new(), phase, host, device]);
    }
    columns
}

/// What the kernels of each family take, and where their times came from.
fn kernels(families: &[FamilyTime], answer: &Answer) -> Columns {
    let mut columns = Columns::new(&["kernels", ">count", ">device ms", ">of step", ">each ±", "source"]);
    for family in families.iter().take(FAMILIES) {
        columns.row([
            family.family.to_owned(),
            grouped(family.count as u64),
            ms(family.device_ms),
            share(family.device_ms, answer),
            format!("{:.0} %", 100.0 * family.half_width.exp_m1()),
            family.source.to_owned(),
        ]);
    }
    columns
}

fn ops(answer: &Answer) -> Columns {
    let all = answer.ops.as_deref().unwrap_or_default();
    let shown = if answer.families.is_some() { OPS.1 } else { OPS.0 };
    let mut columns = Columns::new(&["op", ">count", ">host ms", ">device ms", ">critical ms", ">of step"]);
    for op in all.iter().take(shown) {
        columns.row([
            shorten(format::op(&op.name), 50),
            grouped(op.count as u64),
            ms(op.host_ms),
            ms(op.device_ms),
            ms(op.critical_ms),
            share(op.critical_ms, answer),
        ]);
    }
    columns
}

fn critical(answer: &Answer, runs: Vec<Run>) -> Columns {
    let mut columns = Columns::new(&["critical path", "phase", ">ms", ">of step", "mostly"]);
    for run in runs {
        let Some((place, phase)) = run.key() else { continue };
        let time = run.time.as_millis();
        let names: Vec<&str> = run.names().into_iter().take(3).collect();
        columns.row([
            place.to_owned(),
            phase.name().to_owned(),
            ms(time),
            share(time, answer),
            shorten(&names.join(", "), WIDTH - 48),
        ]);
    }
    columns
}

/// Coverage and warnings.
fn below(answer: &Answer) -> String {
    // Nothing was recorded that could be covered.
    let mut text = if answer.derived { String::new() } else { coverage(&answer.coverage, answer) };
    for warning in &answer.warnings {
        text.push_str(&wrapped(&format!("! {warning}"), WIDTH, 2));
        text.push('\n');
    }
    text
}

fn coverage(coverage: &CoverageJson, answer: &Answer) -> String {
    let gaps = coverage.priced.as_ref().map_or(String::new(), |priced| {
        format!(
            "; host gaps: {} own, {} from the profile, {} unpriced",
            grouped(priced.own as u64),
            grouped(priced.profile as u64),
            grouped(priced.unpriced as u64),
        )
    });
    format!(
        "coverage: {} of {} in an op, {} of {} linked\n          {} of {} alike{gaps}\n",
        percent(coverage.launches_attributed_share),
        counted(coverage.launches, "launch"),
        percent(coverage.activities_linked_share),
        counted(coverage.activities, "device activity"),
        coverage.steps_alike,
        counted(answer.steps.count, "step"),
    )
}
