//! Construction of the graph: chooses the template step and matches every other step with it.

use rustc_hash::FxHashMap;
use steptime_trace::{Bytes, Nanos, Trace};
use typed_index_collections::{TiSlice, TiVec};

use crate::align::align;
use crate::blocking;
use crate::collectives;
use crate::coverage::Coverage;
use crate::device_bound_period;
use crate::error::Error;
use crate::events;
use crate::graph::{self, StepGraph};
use crate::handoff;
use crate::ids::{ActivityId, CallId, StepId, TraceCall};
use crate::independent_check::IndependentCheck;
use crate::inferred_waits;
use crate::launch_links::Links;
use crate::lost_kernels::{self, Launch, Launches, kernel_launches};
use crate::marks::{self, Label, RawMark, Source, ThreadMarks};
use crate::medoid;
use crate::nesting_limit::check_nesting;
use crate::phase;
use crate::queue_delay;
use crate::rows::Rows;
use crate::samples::{Samples, union};
use crate::steps::{self, Steps};
use crate::tables::Activity;

/// Options of building the graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Number of the only step to use: it is the template and the only sample.
    pub step: Option<u32>,
}

/// Minimum frequency, as one step in this many, for the most frequent sequence to be the template.
const FREQUENT: usize = 3;

/// Marks of one step, by thread.
struct StepMarks {
    threads: Vec<Vec<RawMark>>,
    labels: Vec<Vec<Label>>,
}

impl StepGraph {
    /// Builds the step graph from a Kineto trace.
    ///
    /// # Errors
    /// If the trace has no host events, or `options` selects a step that it does not have.
    /// [`Error::TooDeep`] if ops nest deeper than [`DEEPEST`](crate::DEEPEST).
    pub fn build(trace: &Trace, options: &Options) -> Result<StepGraph, Error> {
        let mut threads = marks::by_thread(trace);
        check_nesting(threads.iter().map(|thread| thread.depth).max().unwrap_or(0))?;
        let mut steps = steps::find(trace, &threads).ok_or(Error::NoHostEvents)?;
        let links = Links::from_trace(trace);
        let launched_by = links.launching_calls(trace);
        let mut coverage = Coverage::from_trace(trace, &threads, &launched_by);
        coverage.steps = steps.windows.len();
        if let Some(wanted) = options.step {
            let known: Vec<u32> = steps.windows.iter().map(|w| w.number).collect();
            let at = known.iter().position(|&n| n == wanted).ok_or(Error::NoSuchStep { wanted, known })?;
            steps.windows = vec![steps.windows[StepId::from(at)]].into();
        } else {
            coverage.steps_of_warm_up = steps.leave_out_warm_up();
        }
        let parts = partition(&mut threads, &steps, &mut coverage);
        let parts = leave_out_lost(&kernel_launches(trace, &launched_by), &mut steps, parts, &mut coverage);
        let order = thread_order(&threads, &steps);
        let template = choose_template(&parts, &steps, &mut coverage);
        let rows = Rows::build(trace, &threads, &order, &parts[template].threads);
        Ok(assemble(trace, &steps, parts, template, rows, links, coverage))
    }
}

/// Assigns the marks of every thread to steps. An event that crosses a step's end is dropped.
fn partition(
    threads: &mut [ThreadMarks],
    steps: &Steps,
    coverage: &mut Coverage,
) -> TiVec<StepId, StepMarks> {
    let mut parts: TiVec<StepId, StepMarks> = steps
        .windows
        .iter()
        .map(|_| StepMarks { threads: vec![Vec::new(); threads.len()], labels: Vec::new() })
        .collect();
    let window_of = |time: Nanos| {
        let after = steps.windows.partition_point(|w| w.start <= time);
        let at = StepId::from(after.index().checked_sub(1)?);
        (time <= steps.windows[at].end).then_some(at)
    };
    for (index, thread) in threads.iter_mut().enumerate() {
        let marks = std::mem::take(&mut thread.marks);
        let mut open: Vec<Option<StepId>> = Vec::new();
        let mut begins: Vec<usize> = Vec::new();
        let mut keep: Vec<Option<StepId>> = vec![None; marks.len()];
        for (at, mark) in marks.iter().enumerate() {
            if mark.begins {
                begins.push(at);
                open.push(window_of(mark.time));
            } else if let (Some(begin), Some(window)) = (begins.pop(), open.pop()) {
                let inside = window.is_some_and(|w| mark.time <= steps.windows[w].end);
                if inside {
                    keep[begin] = window;
                    keep[at] = window;
                } else if window.is_some() {
                    coverage.across_steps += 1;
                }
            }
        }
        for (at, mark) in marks.iter().enumerate() {
            if let Some(window) = keep[at] {
                parts[window].threads[index].push(*mark);
            }
        }
    }
    for part in &mut parts {
        part.threads.iter_mut().for_each(Vec::shrink_to_fit);
        part.labels = part.threads.iter().map(|t| t.iter().map(RawMark::label).collect()).collect();
    }
    parts
}

/// Removes the steps for which the profiler lost kernels that other steps have.
fn leave_out_lost(
    launches: &[Option<Launch>],
    steps: &mut Steps,
    parts: TiVec<StepId, StepMarks>,
    coverage: &mut Coverage,
) -> TiVec<StepId, StepMarks> {
    let launches: Vec<Launches> =
        parts.iter().map(|part| Launches::count(launches, part.threads.iter().flatten())).collect();
    let works = |part: &StepMarks| part.threads.iter().any(|marks| !marks.is_empty());
    let any = parts.iter().any(works);
    // A mark without work is not a step: the profiler opened it and was stopped.
    let whole: Vec<bool> = lost_kernels::complete_steps(&launches)
        .into_iter()
        .zip(&parts)
        .map(|(whole, part)| whole && (works(part) || !any))
        .collect();
    coverage.launches_in_steps = launches.iter().map(|step| step.all).sum();
    coverage.launches_lost = launches.iter().map(|step| step.lost).sum();
    let incomplete = whole.iter().zip(&parts).filter(|(whole, part)| !**whole && works(part));
    coverage.steps_incomplete = incomplete.count();
    let mut keep = whole.iter().copied();
    steps.windows.retain(|_| keep.next().unwrap_or(true));
    parts.into_iter().zip(whole).filter_map(|(part, whole)| whole.then_some(part)).collect()
}

/// Returns the main thread first, then the others in trace order.
fn thread_order(threads: &[ThreadMarks], steps: &Steps) -> Vec<usize> {
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|&t| (threads[t].thread != steps.main, threads[t].thread));
    order
}

/// Chooses the template: the middle one of the steps with the most frequent sequence of marks. If all or nearly all steps
/// differ, the medoid is the template, which is never a warm-up step.
fn choose_template(parts: &TiSlice<StepId, StepMarks>, steps: &Steps, coverage: &mut Coverage) -> StepId {
    let mut groups: Vec<Vec<StepId>> = Vec::new();
    let mut index: FxHashMap<&Vec<Vec<Label>>, usize> = FxHashMap::default();
    for (step, part) in parts.iter_enumerated() {
        let group = *index.entry(&part.labels).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(step);
    }
    let size = |g: &Vec<StepId>| parts[g[0]].labels.iter().map(Vec::len).sum::<usize>();
    let best =
        groups.iter().max_by_key(|g| (g.len(), size(g), std::cmp::Reverse(g[0]))).map_or(&[][..], |g| &g[..]);
    coverage.steps_alike = best.len();
    let alone = best.len() == 1 && parts.len() > 1;
    if alone || best.len() * FREQUENT < parts.len() {
        let labels: Vec<&[Vec<Label>]> = parts.iter().map(|part| &part.labels[..]).collect();
        return medoid::find(&labels, &steps.windows);
    }
    best.get(best.len() / 2).copied().unwrap_or_default()
}

fn assemble(
    trace: &Trace,
    steps: &Steps,
    parts: TiVec<StepId, StepMarks>,
    template: StepId,
    mut rows: Rows,
    links: Links,
    mut coverage: Coverage,
) -> StepGraph {
    let mut activities = template_activities(trace, &mut rows, &links);
    let collectives = collectives::find(trace, &rows.ops, &rows.calls, &mut activities);
    let mut samples = Samples::new(parts.len(), rows.marks.len(), activities.len());
    samples.set_template(template);
    measure(&mut samples, trace, steps, &parts, &rows, &links, &mut coverage);
    device_bound_period::choose(&mut samples);
    coverage.hand_offs = handoff::link(&mut rows.marks, &samples);
    handoff::anchor(&mut rows.marks, &rows.threads, &samples);
    let correlation: TiVec<CallId, u64> =
        rows.trace_calls.iter().map(|&call| trace.calls.correlation[call.index()]).collect();
    let found = events::find(trace, &rows.calls, &correlation, &activities, &samples);
    coverage.stream_waits = found.waits;
    coverage.waits_inferred = found.inferred;
    coverage.waits_refuted = found.refuted;
    blocking::classify(trace, &mut rows.calls, &activities, &samples, &correlation);
    count_windows(trace, steps, &parts, &links, &mut coverage);
    drop((parts, links));
    rows.ops.shrink_to_fit();
    rows.calls.shrink_to_fit();
    rows.marks.shrink_to_fit();
    activities.shrink_to_fit();
    let mut graph = StepGraph {
        names: trace.names.clone(),
        threads: rows.threads,
        streams: trace.streams.clone().into(),
        tops: graph::tops(&rows.ops),
        ops: rows.ops,
        calls: rows.calls,
        activities,
        collectives,
        marks: rows.marks,
        waits: found.dependencies,
        queue_delays: TiVec::new(),
        held_back: TiVec::new(),
        samples,
        steps: steps.windows.clone(),
        step_source: steps.source,
        coverage,
        witness: IndependentCheck::measure(trace, &steps.windows),
        device: trace.devices.iter().map(|d| &d.name).find(|name| !name.is_empty()).cloned(),
    };
    phase::assign(&mut graph);
    graph.queue_delays = queue_delay::delays(&graph);
    inferred_waits::hold_back(&mut graph);
    graph
}

/// Returns the device activities that the template's calls launched, in call order.
fn template_activities(trace: &Trace, rows: &mut Rows, links: &Links) -> TiVec<ActivityId, Activity> {
    let launched = |&call: &TraceCall| links.activities(trace, call).len();
    let mut activities: TiVec<ActivityId, Activity> =
        TiVec::with_capacity(rows.trace_calls.iter().map(launched).sum());
    for (index, call) in rows.calls.iter_mut_enumerated() {
        call.first_activity = activities.next_key();
        for &row in links.activities(trace, rows.trace_calls[index]) {
            let at = row.index();
            activities.push(Activity {
                kind: trace.activities.kind[at],
                name: trace.activities.name[at],
                stream: trace.activities.stream[at],
                call: index,
                bytes: Bytes(trace.activities.bytes[at]),
                recorded: Some(row),
                launch: Some(*trace.activities.launch_shape(at)).filter(|shape| shape.grid[0] > 0),
                collective: None,
            });
        }
        call.end_activity = activities.next_key();
    }
    activities
}

/// Fills the columns: every step's marks and activities, matched with the template's.
fn measure(
    samples: &mut Samples,
    trace: &Trace,
    steps: &Steps,
    parts: &TiSlice<StepId, StepMarks>,
    rows: &Rows,
    links: &Links,
    coverage: &mut Coverage,
) {
    let (mut matched, mut all) = (0usize, 0usize);
    let template = samples.template();
    for (step, part) in parts.iter_enumerated() {
        let window = steps.windows[step];
        let before = step.index().checked_sub(1).map(|before| steps.windows[StepId::from(before)]);
        let follows = before.is_some_and(|before| before.closed && before.end == window.start);
        samples.set_step(step, window.start, window.period(), follows);
        samples.set_active(step, active(trace, part, links));
        for (thread, &source) in rows.sources.iter_enumerated() {
            let thread_marks = rows.threads[thread].first_mark.until(rows.threads[thread].end_mark);
            let marks = &part.threads[source];
            let found = align(&parts[template].labels[source], &part.labels[source]);
            all += marks.len().max(thread_marks.len());
            let mut expected = Some(0);
            for (place, row) in found.places().zip(thread_marks) {
                let follows = place == expected;
                expected = place.map(|place| place + 1);
                let Some(place) = place else { continue };
                matched += 1;
                let mark = &marks[place];
                samples.set_mark(step, row, mark.time, follows);
                if let (Source::Call(recorded), true) = (mark.source, mark.begins)
                    && let Some(call) = rows.call_at(row)
                {
                    let own = rows.calls[call].activities();
                    for (slot, &activity) in own.zip(links.activities(trace, recorded)) {
                        let a = activity.index();
                        samples.set_activity(step, slot, trace.activities.start[a], trace.activities.dur[a]);
                    }
                }
            }
        }
    }
    coverage.marks_matched_permille = (matched * 1000).checked_div(all).unwrap_or(1000);
}

/// Returns the time in which any activity launched by a step ran.
fn active(trace: &Trace, part: &StepMarks, links: &Links) -> Nanos {
    let launched =
        part.threads.iter().flatten().filter(|mark| mark.begins).filter_map(|mark| match mark.source {
            Source::Call(call) => Some(links.activities(trace, call)),
            Source::Op(_) => None,
        });
    let activities = &trace.activities;
    let mut spans: Vec<(Nanos, Nanos)> =
        launched.flatten().map(|at| (activities.start[at.index()], activities.end(at.index()))).collect();
    spans.sort_unstable();
    union(&spans)
}

/// Counts the device activities launched within the steps, and those launched before the first step.
fn count_windows(
    trace: &Trace,
    steps: &Steps,
    parts: &TiSlice<StepId, StepMarks>,
    links: &Links,
    coverage: &mut Coverage,
) {
    for part in parts {
        for mark in part.threads.iter().flatten() {
            if let (Source::Call(call), true) = (mark.source, mark.begins) {
                coverage.activities_in_steps += links.activities(trace, call).len();
            }
        }
    }
    let Some(first) = steps.windows.first() else { return };
    for call in 0..trace.calls.len() {
        if trace.calls.start[call] < first.start {
            coverage.activities_before_steps += links.activities(trace, TraceCall::from(call)).len();
        }
    }
}
