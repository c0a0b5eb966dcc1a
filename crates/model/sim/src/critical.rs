//! The critical path: the chain of things that, each waiting for the one before, make the step as long as it
//! is; and slack: how much longer a thing could take before the step does.

use steptime_graph::{Blocking, MarkKind, StepGraph};
use steptime_trace::Nanos;

use crate::engine::{ActivityCause, MarkCause};
use crate::timeline::Timeline;

/// Where a stretch of the critical path runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Host time that ends at a mark.
    Host(u32),
    /// A device activity.
    Device(u32),
    /// The way from a launch to the beginning of an activity.
    Launch(u32),
    /// The way from the end of an activity to the return of the call that waits for it.
    Return(u32),
}

/// One stretch of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// What runs.
    pub place: Place,
    /// When it begins.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
}

#[derive(Clone, Copy)]
enum Node {
    Mark(u32),
    Activity(u32),
}

/// The critical path of a steady step, in order of time. Its stretches join without gaps and last one period.
pub fn path(graph: &StepGraph, timeline: &Timeline) -> Vec<Stretch> {
    let Some((mut node, mut to)) = last(timeline) else { return Vec::new() };
    let stop = to - timeline.period;
    let mut shift = Nanos::ZERO;
    let mut path = Vec::new();
    let most = 2 * (graph.marks.len() + graph.activities.len());
    for _ in 0..most {
        if to <= stop {
            break;
        }
        let (place, before, from) = match node {
            Node::Mark(mark) => before_mark(graph, timeline, mark, &mut shift),
            Node::Activity(activity) => {
                let start = timeline.starts[activity as usize] - shift;
                if to > start {
                    path.push(Stretch { place: Place::Device(activity), from: start.max(stop), to });
                    to = start;
                    if to <= stop {
                        break;
                    }
                }
                before_activity(graph, timeline, activity, &mut shift)
            }
        };
        let from = from.min(to);
        if from < to {
            path.push(Stretch { place, from: from.max(stop), to });
        }
        (node, to) = (before, from);
    }
    path.reverse();
    path
}

/// What ends last.
fn last(timeline: &Timeline) -> Option<(Node, Nanos)> {
    let host = (0..timeline.marks.len() as u32)
        .map(|m| (timeline.marks[m as usize], m))
        .max()
        .map(|(time, m)| (Node::Mark(m), time));
    let device = (0..timeline.ends.len() as u32)
        .map(|a| (timeline.ends[a as usize], a))
        .max()
        .map(|(time, a)| (Node::Activity(a), time));
    match (host, device) {
        (Some(h), Some(d)) => Some(if d.1 > h.1 { d } else { h }),
        (h, d) => h.or(d),
    }
}

fn before_mark(graph: &StepGraph, timeline: &Timeline, mark: u32, shift: &mut Nanos) -> (Place, Node, Nanos) {
    match timeline.mark_causes[mark as usize] {
        MarkCause::Device(activity) => {
            (Place::Return(mark), Node::Activity(activity), timeline.ends[activity as usize] - *shift)
        }
        MarkCause::DeviceBefore(activity) => {
            *shift += timeline.period;
            (Place::Return(mark), Node::Activity(activity), timeline.ends[activity as usize] - *shift)
        }
        cause => {
            let row = &graph.marks[mark as usize];
            let thread = &graph.threads[row.thread as usize];
            let (before, wraps) = match cause {
                MarkCause::Busy if mark > thread.first_mark => (mark - 1, false),
                MarkCause::Busy => (thread.end_mark - 1, true),
                _ => (row.after, row.wraps),
            };
            if wraps {
                *shift += timeline.period;
            }
            (Place::Host(mark), Node::Mark(before), timeline.marks[before as usize] - *shift)
        }
    }
}

fn before_activity(
    graph: &StepGraph,
    timeline: &Timeline,
    activity: u32,
    shift: &mut Nanos,
) -> (Place, Node, Nanos) {
    let place = Place::Launch(activity);
    match timeline.activity_causes[activity as usize] {
        ActivityCause::Stream(before) | ActivityCause::Event(before) => {
            (place, Node::Activity(before), timeline.ends[before as usize] - *shift)
        }
        ActivityCause::StreamBefore(before) | ActivityCause::EventBefore(before) => {
            *shift += timeline.period;
            (place, Node::Activity(before), timeline.ends[before as usize] - *shift)
        }
        ActivityCause::Launch => {
            let mark = launching_mark(graph, timeline, activity);
            (place, Node::Mark(mark), timeline.marks[mark as usize] - *shift)
        }
    }
}

/// The mark at which an activity is handed to the device.
fn launching_mark(graph: &StepGraph, timeline: &Timeline, activity: u32) -> u32 {
    let call = &graph.calls[graph.activities[activity as usize].call as usize];
    let after = timeline.starts[activity as usize] >= timeline.marks[call.end as usize];
    if call.blocking == Blocking::Never && after { call.end } else { call.begin }
}

/// Slack of every mark and of every activity's end: how much later it could be without the step ending later.
#[derive(Debug, Clone)]
pub struct Slack {
    /// By mark.
    pub marks: Vec<Nanos>,
    /// By activity.
    pub activities: Vec<Nanos>,
}

impl Slack {
    /// Computes slack within one step: everything may last until the step's last thing is done.
    pub fn of(graph: &StepGraph, timeline: &Timeline) -> Slack {
        let end = last(timeline).map_or(Nanos::ZERO, |(_, time)| time);
        let mut latest_mark = vec![end; graph.marks.len()];
        let mut latest_end = vec![end; graph.activities.len()];
        let mut nodes: Vec<(Nanos, bool, u32)> = (0..graph.marks.len() as u32)
            .map(|m| (timeline.marks[m as usize], false, m))
            .chain((0..graph.activities.len() as u32).map(|a| (timeline.ends[a as usize], true, a)))
            .collect();
        nodes.sort_unstable();
        for &(time, is_activity, id) in nodes.iter().rev() {
            if is_activity {
                let latest_start =
                    latest_end[id as usize] - (timeline.ends[id as usize] - timeline.starts[id as usize]);
                let lag = |from: Nanos| timeline.starts[id as usize] - from;
                let mark = launching_mark(graph, timeline, id) as usize;
                // The cause binds; the launch, if it is not the cause, must still come before.
                match timeline.activity_causes[id as usize] {
                    ActivityCause::Stream(before) | ActivityCause::Event(before) => {
                        let b = before as usize;
                        latest_end[b] = latest_end[b].min(latest_start - lag(timeline.ends[b]));
                        latest_mark[mark] = latest_mark[mark].min(latest_start);
                    }
                    ActivityCause::Launch => {
                        latest_mark[mark] = latest_mark[mark].min(latest_start - lag(timeline.marks[mark]));
                    }
                    ActivityCause::StreamBefore(_) | ActivityCause::EventBefore(_) => {
                        latest_mark[mark] = latest_mark[mark].min(latest_start);
                    }
                }
            } else {
                let row = &graph.marks[id as usize];
                let latest = latest_mark[id as usize];
                if let MarkCause::Device(activity) = timeline.mark_causes[id as usize] {
                    let a = activity as usize;
                    latest_end[a] = latest_end[a].min(latest - (time - timeline.ends[a]));
                }
                if !row.wraps {
                    let before = row.after as usize;
                    let gap = match timeline.mark_causes[id as usize] {
                        MarkCause::Host => time - timeline.marks[before],
                        _ => Nanos::ZERO,
                    };
                    latest_mark[before] = latest_mark[before].min(latest - gap);
                }
                if id > graph.threads[row.thread as usize].first_mark && row.after + 1 != id {
                    let own = id as usize - 1;
                    latest_mark[own] = latest_mark[own].min(latest);
                }
            }
        }
        Slack {
            marks: latest_mark.iter().zip(&timeline.marks).map(|(l, t)| (*l - *t).max(Nanos::ZERO)).collect(),
            activities: latest_end
                .iter()
                .zip(&timeline.ends)
                .map(|(l, t)| (*l - *t).max(Nanos::ZERO))
                .collect(),
        }
    }
}

/// The op in which a stretch of host time lies, if any.
pub fn op_of(graph: &StepGraph, place: Place) -> Option<u32> {
    match place {
        Place::Device(activity) | Place::Launch(activity) => {
            graph.calls[graph.activities[activity as usize].call as usize].op
        }
        Place::Host(mark) | Place::Return(mark) => match graph.marks[mark as usize].kind {
            MarkKind::OpEnd(op) => Some(op),
            MarkKind::OpBegin(op) => graph.ops[op as usize].parent,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => graph.calls[call as usize].op,
        },
    }
}
