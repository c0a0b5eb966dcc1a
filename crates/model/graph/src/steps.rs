//! Detection of the steps of a trace.

use rustc_hash::FxHashMap;
use steptime_trace::{NameId, Nanos, ThreadId, Trace};
use typed_index_collections::TiVec;

use crate::ids::StepId;
use crate::marks::{self, Source, ThreadMarks};
use crate::names::EventName;
use crate::samples::median;

/// Step of the trace: host events that begin in `start..end` belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepWindow {
    /// Number of the step, from the profiler's mark if there is one, otherwise counted from zero.
    pub number: u32,
    /// Start time.
    pub start: Nanos,
    /// Start time of the next step, or end of the last mark.
    pub end: Nanos,
    /// Whether the next step begins at `end`, or would: then `end - start` is the period of the step.
    pub closed: bool,
}

impl StepWindow {
    /// Returns the time from the beginning of the step to that of the next; `None` if it was not recorded.
    pub fn period(&self) -> Option<Nanos> {
        self.closed.then(|| self.end - self.start)
    }
}

/// Minimum duration of a warm-up step at the beginning, in medians of the steps after it.
const WARM_UP: f64 = 2.0;
/// Minimum median share of the time to the next mark that step marks fill if there is no work between them.
const FILLED: f64 = 0.98;

/// Source of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepSource {
    /// Profiler marks (`ProfilerStep#n`).
    Marked,
    /// Repetition of ops on the main thread.
    Repeated,
    /// Neither: the whole trace is taken as one step.
    Whole,
}

/// Steps of a trace.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    pub windows: TiVec<StepId, StepWindow>,
    pub source: StepSource,
    pub main: ThreadId,
}

impl Steps {
    /// Removes the warm-up steps at the beginning. Returns their number.
    pub(crate) fn leave_out_warm_up(&mut self) -> usize {
        let periods: Vec<Nanos> = self.windows.iter().filter_map(StepWindow::period).collect();
        let is_warm_up = |at: &usize| {
            let rest = &mut periods[at + 1..].to_vec();
            rest.len() >= 2
                && median(rest).is_some_and(|usual| periods[*at].0 as f64 > WARM_UP * usual.0 as f64)
        };
        let count = (0..periods.len()).take_while(is_warm_up).count();
        self.windows.drain(..StepId::from(count));
        count
    }
}

/// Returns the steps of a trace in order, and their source; `None` if the host did nothing. Does not
/// align anything: for steps that the profiler marked it only reads the names of ops.
pub fn step_windows(trace: &Trace) -> Option<(Vec<StepWindow>, StepSource)> {
    let steps = marked(trace).or_else(|| find(trace, &marks::by_thread(trace)))?;
    Some((steps.windows.into_iter().collect(), steps.source))
}

pub(crate) fn find(trace: &Trace, threads: &[ThreadMarks]) -> Option<Steps> {
    marked(trace).or_else(|| {
        let main = busiest_forward_thread(trace, threads)?;
        let marks = threads.iter().find(|t| t.thread == main)?;
        Some(repeated(trace, marks, threads).unwrap_or_else(|| whole(threads, main)))
    })
}

fn marked(trace: &Trace) -> Option<Steps> {
    let number = |(_, name)| match EventName::parse(name) {
        EventName::ProfilerStep(number) => Some(number),
        _ => None,
    };
    let numbers: TiVec<NameId, Option<u32>> = trace.names.iter().map(number).collect();
    let mut found: Vec<(Nanos, Nanos, ThreadId, u32)> = (0..trace.ops.len())
        .filter_map(|op| {
            let number = numbers[trace.ops.name[op]]?;
            let start = trace.ops.start[op];
            Some((start, start + trace.ops.dur[op], trace.ops.thread[op], number))
        })
        .collect();
    found.sort_unstable();
    let main = found.first()?.2;
    found.retain(|mark| mark.2 == main);
    // The same step marked twice (as an op and as an annotation) is one step.
    found.dedup_by_key(|mark| mark.3);
    let mut shares: Vec<f64> = found
        .windows(2)
        .map(|pair| (pair[0].1 - pair[0].0).0 as f64 / (pair[1].0 - pair[0].0).0 as f64)
        .collect();
    shares.sort_unstable_by(f64::total_cmp);
    // If marks follow one another, the last mark is as long as its step.
    let filled = shares.get(shares.len() / 2).is_none_or(|&share| share >= FILLED);
    let window =
        |(at, &(start, end, _, number)): (usize, &(Nanos, Nanos, ThreadId, u32))| match found.get(at + 1) {
            Some(next) => StepWindow { number, start, end: next.0, closed: true },
            None => StepWindow { number, start, end, closed: filled },
        };
    let windows = found.iter().enumerate().map(window).collect();
    Some(Steps { windows, source: StepSource::Marked, main })
}

/// Returns the thread with the most host time that is not an autograd thread.
fn busiest_forward_thread(trace: &Trace, threads: &[ThreadMarks]) -> Option<ThreadId> {
    let busy = |t: &ThreadMarks| {
        let mut total = Nanos::ZERO;
        let (mut depth, mut since) = (0u32, Nanos::ZERO);
        for mark in &t.marks {
            if mark.begins {
                if depth == 0 {
                    since = mark.time;
                }
                depth += 1;
            } else {
                depth -= 1;
                if depth == 0 {
                    total += mark.time - since;
                }
            }
        }
        total
    };
    let autograd =
        |t: &ThreadMarks| t.marks.iter().any(|m| EventName::parse(trace.names.get(m.name)).is_backward());
    threads
        .iter()
        .filter(|t| !autograd(t))
        .max_by_key(|t| (busy(t), std::cmp::Reverse(t.thread.0)))
        .or_else(|| threads.iter().max_by_key(|t| busy(t)))
        .map(|t| t.thread)
}

/// Detects steps by repetition: the shortest period after which the top-level ops of the main thread repeat.
fn repeated(trace: &Trace, main: &ThreadMarks, threads: &[ThreadMarks]) -> Option<Steps> {
    let mut tops: Vec<(NameId, Nanos, Nanos)> = Vec::new();
    let mut depth = 0u32;
    for mark in &main.marks {
        if mark.begins {
            if depth == 0 && matches!(mark.source, Source::Op(_)) {
                tops.push((mark.name, mark.time, mark.time));
            }
            depth += 1;
        } else {
            depth -= 1;
            if let Some(last) = tops.last_mut() {
                last.2 = last.2.max(mark.time);
            }
        }
    }
    let names: Vec<NameId> = tops.iter().map(|top| top.0).collect();
    let (period, first) = candidates(&names).into_iter().find_map(|period| {
        let first = phase_of(trace, &names, period);
        let sweep = || {
            is_sweep(trace, &names, period, first) && !others_take_part(&tops, period, first, main, threads)
        };
        (repeats(&names, period) && !sweep()).then_some((period, first))
    })?;
    let mut windows = TiVec::new();
    let mut at = first;
    while at + period <= names.len() {
        let next = tops.get(at + period);
        let end = next.map_or(tops[at + period - 1].2, |next| next.1);
        windows.push(StepWindow {
            number: windows.len() as u32,
            start: tops[at].1,
            end,
            closed: next.is_some(),
        });
        at += period;
    }
    (windows.len() >= 2).then_some(Steps { windows, source: StepSource::Repeated, main: main.thread })
}

/// Returns the periods that a sequence of names may have, the shortest first.
fn candidates(names: &[NameId]) -> Vec<usize> {
    let mut positions: FxHashMap<NameId, Vec<usize>> = FxHashMap::default();
    for (i, &name) in names.iter().enumerate() {
        positions.entry(name).or_default().push(i);
    }
    let mut candidates: Vec<usize> = positions
        .values()
        .filter(|at| at.len() >= 2)
        .flat_map(|at| {
            let mut gaps: Vec<usize> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort_unstable();
            [gaps[gaps.len() / 2], gaps[gaps.len() - 1]]
        })
        .filter(|&gap| gap >= 2 && 2 * gap <= names.len())
        .collect();
    candidates.sort_unstable();
    candidates.dedup();
    candidates.truncate(256);
    candidates
}

/// Whether at least nine of ten names occur again one period later.
fn repeats(names: &[NameId], period: usize) -> bool {
    let pairs = names.len() - period;
    let equal = (0..pairs).filter(|&i| names[i] == names[i + period]).count();
    // A loop over equal layers repeats too, but does not fill the trace.
    equal * 10 >= pairs * 9 && distinct(&names[..period]) > 1
}

/// Whether the repetitions are the layers of one pass and not steps. Then there are ops before or after them that occur in none of
/// them (an embedding, a head), and none of them ends with an optimizer.
///
/// A recorded loop of steps may begin and end inside a step, but only with names that all steps have.
fn is_sweep(trace: &Trace, names: &[NameId], period: usize, first: usize) -> bool {
    let count = (names.len() - first) / period;
    let is_optimizer = |&name: &NameId| EventName::parse(trace.names.get(name)).is_optimizer();
    let optimizers = names.iter().filter(|name| is_optimizer(name)).count();
    if count < 2 || optimizers * 2 >= count {
        return false;
    }
    // A name that at least half of the repetitions have is part of the pattern.
    let mut seen: FxHashMap<NameId, usize> = FxHashMap::default();
    for window in names[first..first + count * period].chunks(period) {
        let mut own = window.to_vec();
        own.sort_unstable();
        own.dedup();
        for name in own {
            *seen.entry(name).or_default() += 1;
        }
    }
    names.iter().any(|name| seen.get(name).is_none_or(|&windows| windows * 2 < count))
}

/// Whether another thread works in at least half of the repetitions. Each step has a backward pass; the backward pass of
/// a loop over layers comes after the last of them.
fn others_take_part(
    tops: &[(NameId, Nanos, Nanos)],
    period: usize,
    first: usize,
    main: &ThreadMarks,
    threads: &[ThreadMarks],
) -> bool {
    let count = (tops.len() - first) / period;
    let beginning = |window: usize| tops.get(first + window * period).map_or(Nanos::MAX, |top| top.1);
    threads.iter().filter(|thread| thread.thread != main.thread).any(|thread| {
        let works = |window: usize| {
            let at = thread.marks.partition_point(|mark| mark.time < beginning(window));
            thread.marks.get(at).is_some_and(|mark| mark.time < beginning(window + 1))
        };
        2 * (0..count).filter(|&window| works(window)).count() >= count
    })
}

fn distinct(names: &[NameId]) -> usize {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// Returns the position in the period at which a step begins: after the optimizer if there is one, otherwise at the trace's start.
fn phase_of(trace: &Trace, names: &[NameId], period: usize) -> usize {
    let last_optimizer =
        names[..period].iter().rposition(|&name| EventName::parse(trace.names.get(name)).is_optimizer_step());
    last_optimizer.map_or(0, |at| (at + 1) % period)
}

fn whole(threads: &[ThreadMarks], main: ThreadId) -> Steps {
    let times = threads.iter().flat_map(|t| t.marks.iter().map(|m| m.time));
    let start = times.clone().min().unwrap_or(Nanos::ZERO);
    let end = times.max().unwrap_or(start) + Nanos(1);
    Steps {
        windows: vec![StepWindow { number: 0, start, end, closed: false }].into(),
        source: StepSource::Whole,
        main,
    }
}
