//! A step in time, from a graph and the times of its marks and activities.

use rustc_hash::FxHashMap;
use steptime_graph::{ActivityId, MarkId, Phase, Role, StepGraph, StepId};
use steptime_predict::Prediction;
use steptime_sim::critical::{Place, Stretch};
use steptime_sim::{Idle, IdleCause};
use steptime_trace::{ActivityKind, Nanos};

use super::lanes::{self, Slice};
use super::{Lane, Path, Side, Waits};
use crate::columns::Columns;

/// Times of marks and activities; `None` for those without a time.
struct Times<'t> {
    mark: Box<dyn Fn(MarkId) -> Option<Nanos> + 't>,
    activity: Box<dyn Fn(ActivityId) -> Option<(Nanos, Nanos)> + 't>,
}

/// Conversion of nanoseconds to ticks.
#[derive(Debug, Clone, Copy)]
struct Clock {
    zero: Nanos,
    tick: i64,
}

impl Clock {
    /// Chooses ticks that can express all times from the first to the last.
    fn spanning(zero: Nanos, last: Nanos) -> Clock {
        let span = (last.0 - zero.0).max(0);
        let mut tick = 1;
        while span / tick >= i64::from(u32::MAX) {
            tick *= 2;
        }
        Clock { zero, tick }
    }

    fn at(self, time: Nanos) -> u32 {
        u32::try_from(((time.0 - self.zero.0) / self.tick).max(0)).unwrap_or(u32::MAX)
    }
}

/// Returns a predicted step, with the critical path and the waits.
pub(crate) fn predicted(
    name: &str,
    graph: &StepGraph,
    prediction: &Prediction,
    columns: &mut Columns,
) -> Side {
    let timeline = &prediction.timeline;
    let times = Times {
        mark: Box::new(|mark| timeline.marks.get(mark).copied()),
        activity: Box::new(|a| Some((*timeline.starts.get(a)?, *timeline.ends.get(a)?))),
    };
    let mut waits = Idle::waits(graph, timeline);
    waits.sort_by_key(|wait| wait.since);
    let early = prediction.path.iter().map(|stretch| stretch.from).chain(waits.iter().map(|wait| wait.since));
    let clock = clock(graph, &times, early.min());
    let (mut side, streams) = side(name, graph, &times, clock, columns);
    side.period = u32::try_from(timeline.period.0 / clock.tick).ok();
    side.path = Some(path(graph, &prediction.path, &streams, clock, columns));
    let length = |from: Nanos, to: Nanos| clock.at(to).saturating_sub(clock.at(from));
    side.waits = Some(Waits {
        start: columns.growing(waits.iter().map(|wait| clock.at(wait.since))),
        length: columns.whole(waits.iter().map(|wait| length(wait.since, wait.until))),
        causes: IdleCause::ALL
            .map(|cause| {
                let of = |time: Nanos| u32::try_from(time.0 / clock.tick).unwrap_or(u32::MAX);
                columns.whole(waits.iter().map(|wait| of(wait.why.get(cause))))
            })
            .to_vec(),
    });
    side
}

/// Returns a step of the recording: the first with all samples, else the one with most; `None` if none was measured.
pub(crate) fn measured(name: &str, graph: &StepGraph, columns: &mut Columns) -> Option<Side> {
    let samples = &graph.samples;
    let missing = |step: StepId| {
        let marks = graph.marks.keys().filter(|&mark| samples.mark(step, mark).is_none());
        let activities = graph.activities.keys().filter(|&a| samples.activity_start(step, a).is_none());
        marks.count() + activities.count()
    };
    let step = samples.steps().min_by_key(|&step| (missing(step), step))?;
    let times = Times {
        mark: Box::new(move |mark| samples.mark(step, mark)),
        activity: Box::new(move |a| Some((samples.activity_start(step, a)?, samples.activity_end(step, a)?))),
    };
    let clock = clock(graph, &times, None);
    Some(side(name, graph, &times, clock, columns).0)
}

fn clock(graph: &StepGraph, times: &Times<'_>, early: Option<Nanos>) -> Clock {
    let marks = || graph.marks.keys().filter_map(&times.mark);
    let activities = || graph.activities.keys().filter_map(&times.activity);
    let first = marks().chain(activities().map(|(from, _)| from)).chain(early).min();
    let last = marks().chain(activities().map(|(_, to)| to)).max();
    Clock::spanning(first.unwrap_or(Nanos::ZERO), last.unwrap_or(Nanos::ZERO))
}

/// Returns the lanes, and the lane of each stream.
fn side(
    name: &str,
    graph: &StepGraph,
    times: &Times<'_>,
    clock: Clock,
    columns: &mut Columns,
) -> (Side, FxHashMap<usize, u32>) {
    let mut threads: Vec<Vec<Slice>> = vec![Vec::new(); graph.threads.len()];
    let mut streams: Vec<Vec<Slice>> = vec![Vec::new(); graph.streams.len()];
    let mut without_time = 0;
    on_threads(graph, times, clock, columns, &mut threads, &mut without_time);
    on_streams(graph, times, clock, columns, &mut streams, &mut without_time);
    let slices = threads.iter().chain(&streams).map(Vec::len).sum();
    let ends = threads.iter().chain(&streams).flatten().map(|slice| slice.end);
    let ticks = ends.max().unwrap_or(0);
    let mut lanes = Vec::new();
    for (row, slices) in graph.threads.iter().zip(threads) {
        let role = match row.role {
            Role::Main => "main thread",
            Role::Autograd => "autograd thread",
            Role::Other => "thread",
        };
        let name = format!("{role} {}", row.tid);
        lanes.push(Lane { name, kind: "thread", rows: lanes::rows(slices, columns) });
    }
    let mut places = FxHashMap::default();
    for (at, (row, slices)) in graph.streams.iter().zip(streams).enumerate() {
        if !slices.is_empty() {
            places.insert(at, lanes.len() as u32);
            let name = format!("device {} stream {}", row.device, row.stream);
            lanes.push(Lane { name, kind: "stream", rows: lanes::rows(slices, columns) });
        }
    }
    let tick_ns = u32::try_from(clock.tick).unwrap_or(u32::MAX);
    let (name, period) = (name.to_owned(), None);
    (Side { name, tick_ns, ticks, period, slices, without_time, lanes, waits: None, path: None }, places)
}

fn on_threads(
    graph: &StepGraph,
    times: &Times<'_>,
    clock: Clock,
    columns: &mut Columns,
    threads: &mut [Vec<Slice>],
    without_time: &mut usize,
) {
    let mut span = |begin: MarkId, end: MarkId| {
        let found = (times.mark)(begin).zip((times.mark)(end));
        *without_time += usize::from(found.is_none());
        let (from, to) = found?;
        Some((clock.at(from), clock.at(to.max(from))))
    };
    for (at, op) in graph.ops.iter_enumerated() {
        let Some((start, end)) = span(op.begin, op.end) else { continue };
        let name = columns.text(graph.op_name(at));
        let kind = u8::from(op.annotation);
        let slice = Slice { start, end, name, kind, phase: op.phase, op: at.0 + 1 };
        threads[op.thread.index()].push(slice);
    }
    for call in &graph.calls {
        let Some((start, end)) = span(call.begin, call.end) else { continue };
        let name = columns.text(graph.names.get(call.api));
        let phase = call.op.map_or(Phase::Other, |op| graph.ops[op].phase);
        let slice = Slice { start, end, name, kind: 2, phase, op: call.op.map_or(0, |op| op.0 + 1) };
        threads[call.thread.index()].push(slice);
    }
}

fn on_streams(
    graph: &StepGraph,
    times: &Times<'_>,
    clock: Clock,
    columns: &mut Columns,
    streams: &mut [Vec<Slice>],
    without_time: &mut usize,
) {
    for (at, activity) in graph.activities.iter_enumerated() {
        let Some((from, to)) = (times.activity)(at) else {
            *without_time += 1;
            continue;
        };
        let op = graph.calls[activity.call].op;
        let kind = match activity.kind {
            ActivityKind::Kernel => 3,
            ActivityKind::Memcpy => 4,
            ActivityKind::Memset => 5,
        };
        streams[activity.stream.index()].push(Slice {
            start: clock.at(from),
            end: clock.at(to.max(from)),
            name: columns.text(graph.names.get(activity.name)),
            kind,
            phase: op.map_or(Phase::Other, |op| graph.ops[op].phase),
            op: op.map_or(0, |op| op.0 + 1),
        });
    }
}

fn path(
    graph: &StepGraph,
    path: &[Stretch],
    streams: &FxHashMap<usize, u32>,
    clock: Clock,
    columns: &mut Columns,
) -> Path {
    let of_activity = |activity: ActivityId| {
        let row = &graph.activities[activity];
        (streams.get(&row.stream.index()).copied().unwrap_or(0), row.name)
    };
    let told = |stretch: &Stretch| match stretch.place {
        Place::Host(mark) => (0, graph.marks[mark].thread.0, graph.mark_name(mark)),
        Place::Return(mark) => (3, graph.marks[mark].thread.0, graph.mark_name(mark)),
        Place::Device(activity) => (1, of_activity(activity).0, of_activity(activity).1),
        Place::Launch(activity) => (2, of_activity(activity).0, of_activity(activity).1),
    };
    let rows: Vec<(u8, u32, u32)> = path
        .iter()
        .map(|stretch| {
            let (place, lane, name) = told(stretch);
            (place, lane, columns.text(graph.names.get(name)))
        })
        .collect();
    let length = |stretch: &Stretch| clock.at(stretch.to).saturating_sub(clock.at(stretch.from));
    Path {
        start: columns.growing(path.iter().map(|stretch| clock.at(stretch.from))),
        length: columns.whole(path.iter().map(length)),
        place: columns.small(rows.iter().map(|row| row.0)),
        lane: columns.whole(rows.iter().map(|row| row.1)),
        name: columns.whole(rows.iter().map(|row| row.2)),
    }
}
