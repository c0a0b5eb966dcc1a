//! The ranks of a job on one screen: predicted, and as recorded.

use std::collections::BTreeMap;

use serde_json::json;
use steptime_answers::{
    JobPredictionReport, JobRecordingReport,
    job::{CollectiveEntry, DeviceParts, JobPiece, StragglerEntry},
};

use super::csv::Table;
use super::format::{self, counted, grouped, ms, percent};
use super::table::Columns;
use super::width::{apart, prose, shorten, width, wrapped};
use super::{doubts, memory};
use crate::output::name;

/// Number of ranks to show; of more the worst are shown.
const RANKS: usize = 16;
/// Number of collectives and of stretches of the critical path to show.
const ROWS: usize = 12;
/// Number of stragglers to show.
const STRAGGLERS: usize = 2;
/// Number of ranks of the critical path to show.
const NAMED: usize = 3;
/// Number of changes to show.
const CHANGES: usize = 6;
/// Ratio of a rank's busy time to that of others above which it works longer.
const WORTH: f64 = 1.01;

/// Returns a predicted step of all ranks as text.
pub fn predicted(answer: &JobPredictionReport) -> String {
    let mut text = headline(answer);
    text.push('\n');
    text.push_str(&ranks(answer).text());
    text.push_str(&more(answer.ranks.len()));
    text.push('\n');
    text.push_str(&collectives(answer).text());
    text.push('\n');
    text.push_str(&critical(answer).text());
    text
}

/// Returns the number of ranks that are not shown.
fn more(ranks: usize) -> String {
    if ranks > RANKS { format!("... and {} more, in --json\n", ranks - RANKS) } else { String::new() }
}

/// Returns the step in a few lines.
pub fn headline(answer: &JobPredictionReport) -> String {
    let [low, high] = answer.interval_ms;
    let interval = format!("{:.0} % interval {} to {} ms", 100.0 * answer.interval_level, ms(low), ms(high));
    let rate = match (answer.samples_per_s, answer.batch) {
        (Some(rate), Some(batch)) => {
            format!("{} samples/s at batch {}", grouped(rate.round() as u64), grouped(batch))
        }
        _ => String::new(),
    };
    let device = name(answer.device.as_deref().unwrap_or("unnamed devices"));
    let title = format!("{}, {} on {device}", name(&answer.name), counted(answer.world, "rank"));
    let doubts = doubts::text(&answer.doubts);
    format!(
        "{}\n{}\n{doubts}{}{}{}",
        shorten(&title, width()),
        apart(&[format!("step {} ms", ms(answer.step_ms)), interval, rate], width()),
        paragraph("", &how(answer)),
        changes(answer),
        decides(answer),
    )
}

/// Smallest ratio to a middle host at which a slower host is shown.
const WORTH_SAYING: f64 = 1.0005;

/// Returns the method, host, kernels and process of the prediction.
fn how(answer: &JobPredictionReport) -> String {
    let slower =
        answer.host_slower_than.as_ref().map_or_else(String::new, |than| format!(" x {}", than.times));
    let (host, kernels) = (shorten(&answer.host, 60), shorten(&answer.kernels, 40));
    let times = if answer.collective_times == answer.kernels {
        format!("kernels and collectives {kernels}")
    } else {
        format!("kernels {kernels}, collectives modelled for {}", name(&answer.collective_times))
    };
    format!(
        "method {}, all ranks together, host {host}{slower}, {times}, process {}",
        answer.method, answer.process
    )
}

/// Returns the changes of a single rank's step.
fn changes(answer: &JobPredictionReport) -> String {
    let shown = answer.changes.iter().take(CHANGES);
    let more = answer.changes.len().saturating_sub(CHANGES);
    let rest = if more > 0 {
        paragraph("", &format!("... and {more} more changes, in --json"))
    } else {
        String::new()
    };
    // The memory of a changed step was not recorded, so that the predicted peak is shown.
    let peaks =
        answer.ranks.iter().filter(|_| !answer.changes.is_empty()).filter_map(|rank| rank.peak_mb.as_ref());
    let most = peaks.max_by(|a, b| a.total().total_cmp(&b.total()));
    let memory =
        most.map_or_else(String::new, |peak| paragraph("", &format!("{} on a rank", memory::line(peak))));
    shown.map(|change| paragraph("", change)).chain([rest, memory]).collect()
}

/// Returns the ranks with the largest shares of the critical path.
fn decides(answer: &JobPredictionReport) -> String {
    let mut ranks: Vec<_> = answer.ranks.iter().collect();
    ranks.sort_by(|a, b| b.critical_ms.total_cmp(&a.critical_ms));
    let share = |ms: f64| if answer.step_ms > 0.0 { ms / answer.step_ms } else { 0.0 };
    let worth = ranks.iter().take(NAMED).filter(|rank| share(rank.critical_ms) > 0.05);
    let each: Vec<String> =
        worth.map(|rank| format!("rank {} {}", rank.rank, percent(share(rank.critical_ms)))).collect();
    if each.is_empty() {
        return String::new();
    }
    let slowest = answer.slowest_host.filter(|slowest| slowest.times > WORTH_SAYING).map(|slowest| {
        format!(
            "; of {}, the host of rank {} is assumed to be the slowest, {:.3} times as slow as the median",
            counted(answer.world, "rank"),
            slowest.rank,
            slowest.times
        )
    });
    paragraph("", &format!("critical path: {}{}", each.join(", "), slowest.unwrap_or_default()))
}

fn paragraph(sign: &str, words: &str) -> String {
    wrapped(&format!("{sign}{words}"), prose(), 2) + "\n"
}

/// Columns of a rank's device times.
const PARTS: [&str; 6] = [">rank", ">compute ms", ">comm ms", ">wait ms", ">idle ms", "?>hidden ms"];

fn parts(rank: u32, parts: &DeviceParts) -> Vec<String> {
    vec![
        rank.to_string(),
        ms(parts.computes_ms),
        ms(parts.moves_ms),
        ms(parts.waits_ms),
        ms(parts.idles_ms),
        ms(parts.hidden_ms),
    ]
}

fn ranks(answer: &JobPredictionReport) -> Columns {
    let mut columns = Columns::new(&[&PARTS[..], &[">alone ms", ">last at", "?>host x"]].concat());
    let mut shown: Vec<_> = answer.ranks.iter().collect();
    shown.sort_by(|a, b| b.alone_ms.total_cmp(&a.alone_ms));
    shown.truncate(RANKS);
    shown.sort_by_key(|rank| rank.rank);
    for rank in shown {
        let mut row = parts(rank.rank, &rank.parts);
        row.push(ms(rank.alone_ms));
        row.push(format!("{} of {}", rank.last, rank.meets));
        row.push(rank.host_slowness.map_or_else(|| "-".into(), |slow| format!("{slow:.2}")));
        columns.row(row);
    }
    columns
}

fn collectives(answer: &JobPredictionReport) -> Columns {
    let mut columns =
        Columns::new(&["~collective", ">ranks", ">bytes", ">comm ms", ">last rank", ">max wait ms"]);
    for met in answer.collectives.iter().take(ROWS) {
        let mut row = what(&met.what);
        row.push(ms(met.moves_ms));
        row.push(met.last.to_string());
        row.push(ms(met.waits_ms.iter().copied().fold(0.0, f64::max)));
        columns.row(row);
    }
    columns
}

fn what(met: &CollectiveEntry) -> Vec<String> {
    // The bytes of a collective are not known if its arguments were not recorded.
    let bytes = if met.bytes == 0 && met.op != "barrier" { "-".into() } else { grouped(met.bytes) };
    let ranks = met.size.map_or(met.ranks.len(), |size| met.ranks.len().max(size as usize));
    vec![met.op.to_owned(), ranks.to_string(), bytes]
}

/// Rank, place and phase of a stretch of the path.
type Key<'a> = (u32, &'a str, &'a str);

/// Returns the table of the critical path by rank, place and phase, the longest first.
fn critical(answer: &JobPredictionReport) -> Columns {
    let mut times: BTreeMap<Key<'_>, (f64, BTreeMap<&str, f64>)> = BTreeMap::new();
    for JobPiece { rank, place, what, phase, ms } in &answer.critical_path {
        let (time, names) = times.entry((*rank, place, phase)).or_default();
        *time += ms;
        *names.entry(what).or_default() += ms;
    }
    let mut rows: Vec<_> = times.into_iter().collect();
    rows.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let mut columns = Columns::new(&["critical path", ">rank", "phase", ">ms", ">of step", "~mostly"]);
    for ((rank, place, phase), (time, names)) in rows.into_iter().take(ROWS) {
        let mostly = names.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or("", |(what, _)| what);
        let share = if answer.step_ms > 0.0 { percent(time / answer.step_ms) } else { "-".into() };
        columns.row([
            place.to_owned(),
            rank.to_string(),
            phase.to_owned(),
            ms(time),
            share,
            format::op(mostly).to_owned(),
        ]);
    }
    columns
}

/// Returns the recorded times of ranks and collectives as text.
pub fn recorded(job: &JobRecordingReport) -> String {
    let ranks = match job.ranks.len() {
        here if here < job.world => format!("{here} of {}", counted(job.world, "rank")),
        _ => counted(job.world, "rank"),
    };
    let mut text = format!(
        "{ranks}, {} recorded by all, period {} ms (profiled; the middle half of the steps)\n",
        counted(job.steps, "step"),
        ms(job.period_ms)
    );
    for warning in &job.warnings {
        text.push_str(&paragraph("! ", warning));
    }
    for straggler in job.stragglers.iter().take(STRAGGLERS) {
        text.push_str(&paragraph("", &delays(straggler)));
    }
    text.push('\n');
    let mut columns = Columns::new(&[&PARTS[..], &["?>clock ahead us"]].concat());
    for rank in job.ranks.iter().take(RANKS) {
        let mut row = parts(rank.rank, &rank.parts);
        row.push(format!("{:.1}", rank.clock_ahead_us));
        columns.row(row);
    }
    text.push_str(&columns.text());
    text.push_str(&more(job.ranks.len()));
    text.push('\n');
    let mut columns = Columns::new(&[
        "~collective",
        ">ranks",
        ">bytes",
        ">comm ms",
        ">nccl-tests",
        ">last",
        ">max wait ms",
    ]);
    for met in job.collectives.iter().take(ROWS) {
        let last =
            met.last.iter().enumerate().max_by_key(|&(place, times)| (times, std::cmp::Reverse(place)));
        let mut row = what(&met.what);
        row.push(ms(met.moves_ms));
        row.push(met.expected_ms.map_or_else(|| "-".into(), ms));
        row.push(last.map_or_else(|| "-".into(), |(place, _)| met.what.ranks[place].to_string()));
        row.push(ms(met.waits_ms.iter().copied().fold(0.0, f64::max)));
        columns.row(row);
    }
    text.push_str(&columns.text());
    text
}

/// Describes a rank that keeps the others waiting, and the reasons.
fn delays(straggler: &StragglerEntry) -> String {
    let side = match straggler.cause {
        "input" => "its host, getting the batch,",
        "copies" => "its device, copying,",
        "kernels" => "its device",
        _ => "its host",
    };
    let reasons: Vec<String> = straggler
        .reasons
        .iter()
        .map(|reason| format!("{} {} ms longer", shorten(format::op(&reason.what), 60), ms(reason.longer_ms)))
        .collect();
    let longer = straggler.busy_ms > WORTH * straggler.others_busy_ms;
    let why = match (longer, reasons.is_empty()) {
        (true, true) => {
            format!("works {} ms, on other ranks {}", ms(straggler.busy_ms), ms(straggler.others_busy_ms))
        }
        (true, false) => format!(
            "works {} ms, on other ranks {}: {}",
            ms(straggler.busy_ms),
            ms(straggler.others_busy_ms),
            reasons.join(", ")
        ),
        (false, true) => "works no longer than on other ranks: the rank entered the step late".to_owned(),
        (false, false) => format!("works no longer than on other ranks, but {}", reasons.join(", ")),
    };
    format!(
        "rank {} keeps others waiting for {} ms a step (last at {} of the collectives): {side} {why}",
        straggler.rank,
        ms(straggler.keeps_waiting_ms),
        percent(straggler.last),
    )
}

/// Returns the reason why the ranks of a folder are not shown together.
pub fn mismatch(why: &str) -> String {
    paragraph("! ", why)
}

/// Returns the ranks and collectives of a predicted job: a row for each rank, and one for each rank of a collective.
pub fn csv(answer: &JobPredictionReport) -> Table {
    let columns =
        "table rank name=op bytes computes_ms moves_ms waits_ms idles_ms hidden_ms alone_ms critical_ms last";
    let mut table = Table::new(columns);
    for rank in &answer.ranks {
        table.row_with(&json!({"table": "rank"}), rank);
    }
    for met in &answer.collectives {
        for (rank, waits) in met.what.ranks.iter().zip(&met.waits_ms) {
            let last = usize::from(met.last == *rank);
            table.row_with(
                &json!({"table": "collective", "rank": rank, "waits_ms": waits, "last": last}),
                met,
            );
        }
    }
    table
}
