//! The predicted step beside a measured one, as a Chrome trace that Perfetto opens.

use std::io::{self, Write};

use serde::Serialize;
use steptime_graph::{ActivityId, MarkId, Role, StepGraph, StepId};
use steptime_sim::Timeline;
use steptime_trace::Nanos;

use steptime_predict::{JobPrediction, RankSet};

/// Streams are drawn below all host threads.
const FIRST_STREAM: usize = 1000;

/// One event of the trace, times in microseconds.
#[derive(Serialize)]
struct Event<'a> {
    ph: &'static str,
    cat: &'static str,
    name: &'a str,
    pid: u32,
    tid: usize,
    ts: f64,
    dur: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<EventArguments<'a>>,
}

#[derive(Serialize)]
struct EventArguments<'a> {
    op: &'a str,
    phase: &'static str,
}

/// A name or a sort index of a track.
#[derive(Serialize)]
struct Metadata<'a> {
    ph: &'static str,
    name: &'static str,
    pid: u32,
    tid: usize,
    args: Label<'a>,
}

#[derive(Serialize)]
struct Label<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_index: Option<usize>,
}

/// Times of all events of one process; `None` for an event that did not happen.
struct Process<'a> {
    pid: u32,
    name: String,
    /// Time drawn as zero; `None` for the first event's time.
    zero: Option<Nanos>,
    mark: Box<dyn Fn(MarkId) -> Option<Nanos> + 'a>,
    activity: Box<dyn Fn(ActivityId) -> Option<(Nanos, Nanos)> + 'a>,
}

/// Writes the trace: process `predicted`, and process `measured` with a step of the recording. Times are microseconds
/// from the first event of each process.
///
/// # Errors
/// Fails where the trace cannot be written.
pub fn write(out: &mut dyn Write, graph: &StepGraph, timeline: &Timeline) -> io::Result<()> {
    let samples = &graph.samples;
    let predicted = Process {
        pid: 1,
        name: "predicted".into(),
        zero: None,
        mark: Box::new(|mark| timeline.marks.get(mark).copied()),
        activity: Box::new(|a| Some((*timeline.starts.get(a)?, *timeline.ends.get(a)?))),
    };
    let mut writer = Events { out, any: false };
    writer.out.write_all(b"{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n")?;
    process(&mut writer, graph, &predicted)?;
    if let Some(step) = complete_step(graph) {
        let measured = Process {
            pid: 2,
            name: "measured".into(),
            zero: None,
            mark: Box::new(move |mark| samples.mark(step, mark)),
            activity: Box::new(move |a| {
                Some((samples.activity_start(step, a)?, samples.activity_end(step, a)?))
            }),
        };
        process(&mut writer, graph, &measured)?;
    }
    writer.out.write_all(b"\n]}\n")
}

/// Writes the trace of a job: one process per rank, all on one clock. A wait for other ranks inside a collective is drawn within the collective.
///
/// # Errors
/// Fails where the trace cannot be written.
pub fn write_job(out: &mut dyn Write, ranks: &RankSet, predicted: &JobPrediction) -> io::Result<()> {
    let world = &predicted.world;
    let numbers = ranks.crew().numbers;
    let zero = world.offsets.iter().copied().min().unwrap_or(Nanos::ZERO);
    let mut writer = Events { out, any: false };
    writer.out.write_all(b"{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n")?;
    for (rank, step) in ranks.steps.iter().enumerate() {
        let (timeline, offset) = (&world.ranks[rank], world.offsets[rank]);
        let drawn = Process {
            pid: numbers[rank] + 1,
            name: format!("rank {}", numbers[rank]),
            zero: Some(zero),
            mark: Box::new(|mark| Some(*timeline.marks.get(mark)? + offset)),
            activity: Box::new(|a| {
                Some((*timeline.starts.get(a)? + offset, *timeline.ends.get(a)? + offset))
            }),
        };
        process(&mut writer, &step.graph, &drawn)?;
    }
    for (at, met) in ranks.job.rendezvous.iter_enumerated() {
        let meeting = &world.rendezvous[at];
        for (place, (member, &arrival)) in met.members.iter().zip(&meeting.arrivals).enumerate() {
            let late = numbers[met.members[meeting.held_by(place)].rank];
            let track =
                FIRST_STREAM + ranks.steps[member.rank].graph.activities[member.activity].stream.index();
            if meeting.waited(place) > Nanos::ZERO {
                writer.put(&Event {
                    ph: "X",
                    cat: "wait",
                    name: &format!("waits for rank {late}"),
                    pid: numbers[member.rank] + 1,
                    tid: track,
                    ts: micros(arrival - zero),
                    dur: micros(meeting.waited(place)),
                    args: None,
                })?;
            }
        }
    }
    writer.out.write_all(b"\n]}\n")
}

/// The first step with all samples, else the one with the most.
fn complete_step(graph: &StepGraph) -> Option<StepId> {
    let samples = &graph.samples;
    let missing = |step: StepId| {
        let marks = graph.marks.keys().filter(|&mark| samples.mark(step, mark).is_none());
        let activities = graph.activities.keys().filter(|&a| samples.activity_start(step, a).is_none());
        marks.count() + activities.count()
    };
    samples.steps().min_by_key(|&step| (missing(step), step))
}

fn process(writer: &mut Events<'_>, graph: &StepGraph, process: &Process<'_>) -> io::Result<()> {
    tracks(writer, graph, process)?;
    let marks = graph.marks.keys().filter_map(&process.mark);
    let starts = graph.activities.keys().filter_map(|a| Some((process.activity)(a)?.0));
    let zero = process.zero.or_else(|| marks.chain(starts).min()).unwrap_or(Nanos::ZERO);
    let mut event = |cat, name: &str, tid, from: Nanos, to: Nanos, args| {
        let (ts, dur) = (micros(from - zero), micros((to - from).max(Nanos::ZERO)));
        writer.put(&Event { ph: "X", cat, name, pid: process.pid, tid, ts, dur, args })
    };
    for (index, op) in graph.ops.iter_enumerated() {
        if let (Some(from), Some(to)) = ((process.mark)(op.begin), (process.mark)(op.end)) {
            let category = if op.annotation { "annotation" } else { "op" };
            event(category, graph.op_name(index), op.thread.index() + 1, from, to, None)?;
        }
    }
    for call in &graph.calls {
        if let (Some(from), Some(to)) = ((process.mark)(call.begin), (process.mark)(call.end)) {
            event("call", graph.names.get(call.api), call.thread.index() + 1, from, to, None)?;
        }
    }
    for (index, activity) in graph.activities.iter_enumerated() {
        if let Some((from, to)) = (process.activity)(index) {
            let within = graph.calls[activity.call].op.map(|op| EventArguments {
                op: graph.op_name(graph.top_level(op)),
                phase: graph.ops[op].phase.name(),
            });
            let track = FIRST_STREAM + activity.stream.index();
            event("device", graph.names.get(activity.name), track, from, to, within)?;
        }
    }
    Ok(())
}

/// Names the process, its threads and its streams.
fn tracks(writer: &mut Events<'_>, graph: &StepGraph, process: &Process<'_>) -> io::Result<()> {
    let mut label = |what, tid, name: Option<&str>, sort_index| {
        let args = Label { name, sort_index };
        writer.put(&Metadata { ph: "M", name: what, pid: process.pid, tid, args })
    };
    label("process_name", 0, Some(&process.name), None)?;
    label("process_sort_index", 0, None, Some(process.pid as usize))?;
    for (index, thread) in graph.threads.iter().enumerate() {
        let role = match thread.role {
            Role::Main => "main thread",
            Role::Autograd => "autograd thread",
            Role::Other => "thread",
        };
        label("thread_name", index + 1, Some(&format!("{role} {}", thread.tid)), None)?;
        label("thread_sort_index", index + 1, None, Some(index + 1))?;
    }
    for (index, stream) in graph.streams.iter().enumerate() {
        if graph.activities.iter().any(|activity| activity.stream.index() == index) {
            let tid = FIRST_STREAM + index;
            label(
                "thread_name",
                tid,
                Some(&format!("device {} stream {}", stream.device, stream.stream)),
                None,
            )?;
            label("thread_sort_index", tid, None, Some(tid))?;
        }
    }
    Ok(())
}

/// Microseconds of a time; nanoseconds are thousandths, so at most three decimals are printed.
fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1000.0
}

/// Writes events, one per line.
struct Events<'w> {
    out: &'w mut dyn Write,
    any: bool,
}

impl Events<'_> {
    fn put<T: Serialize>(&mut self, event: &T) -> io::Result<()> {
        if std::mem::replace(&mut self.any, true) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }
}
