//! The critical path: the chain of host time and device activities, each waiting for the one before, that determines the
//! step time. And slack: the time by which something could end later without making the step longer.

use steptime_graph::{ActivityId, Blocking, MarkId, MarkKind, OpId, StepGraph, TiVec};
use steptime_trace::Nanos;

use crate::cause::{ActivityCause, MarkCause};
use crate::timeline::Timeline;

/// Location of a stretch of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Host time that ends at a mark.
    Host(MarkId),
    /// A device activity.
    Device(ActivityId),
    /// Delay from a launch to the beginning of an activity.
    Launch(ActivityId),
    /// Delay from the end of an activity to the return of the call that waits for it.
    Return(MarkId),
}

/// One stretch of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    pub place: Place,
    /// Beginning.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Mark(MarkId),
    Activity(ActivityId),
}

/// Returns the critical path of a steady step, in order of time. Its stretches join without gaps and last one period.
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
                let start = timeline.starts[activity] - shift;
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
    path.shrink_to_fit();
    path.reverse();
    path
}

/// Returns the mark or activity that ends last.
pub(crate) fn last(timeline: &Timeline) -> Option<(Node, Nanos)> {
    let host = timeline.marks.iter_enumerated().map(|(mark, &time)| (time, mark)).max();
    let device = timeline.ends.iter_enumerated().map(|(activity, &time)| (time, activity)).max();
    let host = host.map(|(time, mark)| (Node::Mark(mark), time));
    let device = device.map(|(time, activity)| (Node::Activity(activity), time));
    match (host, device) {
        (Some(h), Some(d)) => Some(if d.1 > h.1 { d } else { h }),
        (h, d) => h.or(d),
    }
}

pub(crate) fn before_mark(
    graph: &StepGraph,
    timeline: &Timeline,
    mark: MarkId,
    shift: &mut Nanos,
) -> (Place, Node, Nanos) {
    match timeline.mark_causes[mark] {
        MarkCause::Device(activity) => {
            (Place::Return(mark), Node::Activity(activity), timeline.ends[activity] - *shift)
        }
        MarkCause::DeviceBefore(activity) => {
            *shift += timeline.period;
            (Place::Return(mark), Node::Activity(activity), timeline.ends[activity] - *shift)
        }
        cause => {
            let row = &graph.marks[mark];
            let thread = &graph.threads[row.thread];
            let (before, wraps) = match cause {
                MarkCause::Busy if mark > thread.first_mark => (mark.previous(), false),
                MarkCause::Busy => (thread.end_mark.previous(), true),
                _ => (row.after, row.wraps),
            };
            if wraps {
                *shift += timeline.period;
            }
            (Place::Host(mark), Node::Mark(before), timeline.marks[before] - *shift)
        }
    }
}

pub(crate) fn before_activity(
    graph: &StepGraph,
    timeline: &Timeline,
    activity: ActivityId,
    shift: &mut Nanos,
) -> (Place, Node, Nanos) {
    let place = Place::Launch(activity);
    match timeline.activity_causes[activity] {
        ActivityCause::Stream(before) | ActivityCause::Event(before) => {
            (place, Node::Activity(before), timeline.ends[before] - *shift)
        }
        ActivityCause::StreamBefore(before) | ActivityCause::EventBefore(before) => {
            *shift += timeline.period;
            (place, Node::Activity(before), timeline.ends[before] - *shift)
        }
        ActivityCause::Launch => {
            let mark = launching_mark(graph, timeline, activity);
            (place, Node::Mark(mark), timeline.marks[mark] - *shift)
        }
    }
}

/// Returns the mark at which an activity is handed to the device.
fn launching_mark(graph: &StepGraph, timeline: &Timeline, activity: ActivityId) -> MarkId {
    let call = &graph.calls[graph.activities[activity].call];
    let after = timeline.starts[activity] >= timeline.marks[call.end];
    if call.blocking == Blocking::Never && after { call.end } else { call.begin }
}

/// Slack of every mark and of every activity's end: the time by which it could be later without the step ending later.
#[derive(Debug, Clone)]
pub struct Slack {
    /// Slack of marks.
    pub marks: TiVec<MarkId, Nanos>,
    /// Slack of the ends of activities.
    pub activities: TiVec<ActivityId, Nanos>,
}

impl Slack {
    /// Computes slack within one step: everything may last until the end of the step.
    pub fn measure(graph: &StepGraph, timeline: &Timeline) -> Slack {
        let end = last(timeline).map_or(Nanos::ZERO, |(_, time)| time);
        let mut latest = Latest {
            graph,
            timeline,
            marks: vec![end; graph.marks.len()].into(),
            ends: vec![end; graph.activities.len()].into(),
        };
        for node in by_time(timeline).into_iter().rev() {
            match node {
                Node::Mark(mark) => latest.before_mark(mark),
                Node::Activity(activity) => latest.before_activity(activity),
            }
        }
        let Latest { mut marks, ends: mut activities, .. } = latest;
        let slack = |(latest, time): (&mut Nanos, &Nanos)| *latest = (*latest - *time).max(Nanos::ZERO);
        marks.iter_mut().zip(&timeline.marks).for_each(slack);
        activities.iter_mut().zip(&timeline.ends).for_each(slack);
        Slack { marks, activities }
    }
}

/// All marks and ends of activities, in order of time.
fn by_time(timeline: &Timeline) -> Vec<Node> {
    let marks = timeline.marks.keys().map(Node::Mark);
    let mut nodes: Vec<Node> = marks.chain(timeline.ends.keys().map(Node::Activity)).collect();
    // The nodes of each thread and stream are in order, which makes the sort fast.
    nodes.sort_by_key(|&node| match node {
        Node::Mark(mark) => (timeline.marks[mark], node),
        Node::Activity(activity) => (timeline.ends[activity], node),
    });
    nodes
}

/// The latest times that do not make the step longer, known so far: from the end of the step backwards.
struct Latest<'t> {
    graph: &'t StepGraph,
    timeline: &'t Timeline,
    marks: TiVec<MarkId, Nanos>,
    ends: TiVec<ActivityId, Nanos>,
}

impl Latest<'_> {
    fn limit_mark(&mut self, mark: MarkId, time: Nanos) {
        self.marks[mark] = self.marks[mark].min(time);
    }

    fn limit_end(&mut self, activity: ActivityId, time: Nanos) {
        self.ends[activity] = self.ends[activity].min(time);
    }

    /// Limits the predecessors of an activity.
    fn before_activity(&mut self, activity: ActivityId) {
        let timeline = self.timeline;
        let start = timeline.starts[activity];
        let latest_start = self.ends[activity] - (timeline.ends[activity] - start);
        let mark = launching_mark(self.graph, timeline, activity);
        // The cause is the tight limit; the launch, if it is not the cause, must still come before.
        match timeline.activity_causes[activity] {
            ActivityCause::Stream(before) | ActivityCause::Event(before) => {
                self.limit_end(before, latest_start - (start - timeline.ends[before]));
                self.limit_mark(mark, latest_start);
            }
            ActivityCause::Launch => self.limit_mark(mark, latest_start - (start - timeline.marks[mark])),
            ActivityCause::StreamBefore(_) | ActivityCause::EventBefore(_) => {
                self.limit_mark(mark, latest_start);
            }
        }
    }

    /// Limits the predecessors of a mark.
    fn before_mark(&mut self, mark: MarkId) {
        let timeline = self.timeline;
        let row = &self.graph.marks[mark];
        let (time, latest, cause) = (timeline.marks[mark], self.marks[mark], timeline.mark_causes[mark]);
        if let MarkCause::Device(activity) = cause {
            self.limit_end(activity, latest - (time - timeline.ends[activity]));
        }
        if !row.wraps {
            let gap = if cause == MarkCause::Host { time - timeline.marks[row.after] } else { Nanos::ZERO };
            self.limit_mark(row.after, latest - gap);
        }
        if mark > self.graph.threads[row.thread].first_mark && row.after.next() != mark {
            self.limit_mark(mark.previous(), latest);
        }
    }
}

/// Returns the op that contains a stretch of host time, if any.
pub fn op_of(graph: &StepGraph, place: Place) -> Option<OpId> {
    match place {
        Place::Device(activity) | Place::Launch(activity) => graph.calls[graph.activities[activity].call].op,
        Place::Host(mark) | Place::Return(mark) => match graph.marks[mark].kind {
            MarkKind::OpEnd(op) => Some(op),
            MarkKind::OpBegin(op) => graph.ops[op].parent,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => graph.calls[call].op,
        },
    }
}
