//! Where the steps of a trace begin and end.

use rustc_hash::FxHashMap;
use steptime_trace::{NameId, Nanos, ThreadId, Trace};
use typed_index_collections::TiVec;

use crate::ids::StepId;
use crate::marks::{self, Source, ThreadMarks};
use crate::names::EventName;

/// One step of the trace: host events that begin in `start..end` belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepWindow {
    /// The step's number, from the profiler's mark where there is one, else counted from zero.
    pub number: u32,
    /// When it begins.
    pub start: Nanos,
    /// When the next one begins, or the last mark ends.
    pub end: Nanos,
}

/// How the steps were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepSource {
    /// The profiler marked them (`ProfilerStep#n`).
    Marked,
    /// The main thread repeats itself.
    Repeated,
    /// Neither: the whole trace is taken for one step.
    Whole,
}

/// The steps of a trace.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    pub windows: TiVec<StepId, StepWindow>,
    pub source: StepSource,
    pub main: ThreadId,
}

/// Where the steps of a trace begin and end, in order, and how they were found; `None` where the host did nothing. Nothing
/// is aligned for it: steps that the profiler marked cost one look at the names of ops.
pub fn step_windows(trace: &Trace) -> Option<(Vec<StepWindow>, StepSource)> {
    let steps = marked(trace).or_else(|| find(trace, &marks::of_trace(trace)))?;
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
    let number = |(_, name)| match EventName::of(name) {
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
    let windows = found
        .iter()
        .enumerate()
        .map(|(i, &(start, end, _, number))| StepWindow {
            number,
            start,
            end: found.get(i + 1).map_or(end, |next| next.0),
        })
        .collect();
    Some(Steps { windows, source: StepSource::Marked, main })
}

/// The thread with the most host time that is not an autograd thread.
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
        |t: &ThreadMarks| t.marks.iter().any(|m| EventName::of(trace.names.get(m.name)).is_backward());
    threads
        .iter()
        .filter(|t| !autograd(t))
        .max_by_key(|t| (busy(t), std::cmp::Reverse(t.thread.0)))
        .or_else(|| threads.iter().max_by_key(|t| busy(t)))
        .map(|t| t.thread)
}

/// Steps by repetition: the shortest period after which the top-level ops of the main thread come again.
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
        let end = tops.get(at + period).map_or(tops[at + period - 1].2, |next| next.1);
        windows.push(StepWindow { number: windows.len() as u32, start: tops[at].1, end });
        at += period;
    }
    (windows.len() >= 2).then_some(Steps { windows, source: StepSource::Repeated, main: main.thread })
}

/// Periods that a sequence of names may have, the shortest first.
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

/// Whether at least nine of ten names come again one period later.
fn repeats(names: &[NameId], period: usize) -> bool {
    let pairs = names.len() - period;
    let equal = (0..pairs).filter(|&i| names[i] == names[i + period]).count();
    // A loop over like layers repeats too, but does not fill the trace.
    equal * 10 >= pairs * 9 && distinct(&names[..period]) > 1
}

/// Whether the repetitions are the layers of one pass and not steps. Then ops come before or after them that none of
/// them has (an embedding, a head), and none of them ends with an optimizer.
///
/// A recorded loop of steps may begin and end inside a step, but only with names that all steps have.
fn is_sweep(trace: &Trace, names: &[NameId], period: usize, first: usize) -> bool {
    let count = (names.len() - first) / period;
    let is_optimizer = |&name: &NameId| EventName::of(trace.names.get(name)).is_optimizer();
    let optimizers = names.iter().filter(|name| is_optimizer(name)).count();
    if count < 2 || optimizers * 2 >= count {
        return false;
    }
    // A name that at least half of the repetitions have is one of the pattern.
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

/// Where in the period a step begins: after the optimizer where one is named, else at the trace's start.
fn phase_of(trace: &Trace, names: &[NameId], period: usize) -> usize {
    let last_optimizer =
        names[..period].iter().rposition(|&name| EventName::of(trace.names.get(name)).is_optimizer_step());
    last_optimizer.map_or(0, |at| (at + 1) % period)
}

fn whole(threads: &[ThreadMarks], main: ThreadId) -> Steps {
    let times = threads.iter().flat_map(|t| t.marks.iter().map(|m| m.time));
    let start = times.clone().min().unwrap_or(Nanos::ZERO);
    let end = times.max().unwrap_or(start) + Nanos(1);
    Steps { windows: vec![StepWindow { number: 0, start, end }].into(), source: StepSource::Whole, main }
}
