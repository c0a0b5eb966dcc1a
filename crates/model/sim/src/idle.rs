//! Causes of device idle time.

mod unrecorded;

use steptime_graph::{ActivityId, ApiKind, Blocking, Call, MarkId, MarkKind, Phase, StepGraph, TiVec};
use steptime_trace::Nanos;

use crate::cause::{ActivityCause, MarkCause};
use crate::timeline::{IdleGap, Timeline};
use unrecorded::LostWork;

/// A cause of device idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleCause {
    /// Wait before the first copy of the batch: the loop waits for, or prepares, its input.
    Input,
    /// The host is busy between launches.
    Host,
    /// One host thread hands over to another.
    HandOff,
    /// The host stages a copy.
    Copy,
    /// The host waited for the device, and therefore launches late.
    Synchronisation,
    /// A stream waits for another's event.
    Dependency,
    /// The gap between two queued activities.
    Queue,
    /// A kernel was launched and is not in the recording: the device's activity is unknown.
    Unrecorded,
}

impl IdleCause {
    /// All causes, in the order of output.
    pub const ALL: [IdleCause; 8] = [
        IdleCause::Input,
        IdleCause::Host,
        IdleCause::HandOff,
        IdleCause::Copy,
        IdleCause::Synchronisation,
        IdleCause::Dependency,
        IdleCause::Queue,
        IdleCause::Unrecorded,
    ];

    /// Returns the key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            IdleCause::Input => "input",
            IdleCause::Host => "host",
            IdleCause::HandOff => "hand_off",
            IdleCause::Copy => "copy",
            IdleCause::Synchronisation => "synchronisation",
            IdleCause::Dependency => "dependency",
            IdleCause::Queue => "queue",
            IdleCause::Unrecorded => "unrecorded",
        }
    }

    /// Returns the name for readers.
    pub fn name(self) -> &'static str {
        match self {
            IdleCause::Input => "waiting for input",
            IdleCause::Host => "host-bound launches",
            IdleCause::HandOff => "thread hand-offs",
            IdleCause::Copy => "staging copies",
            IdleCause::Synchronisation => "synchronisation",
            IdleCause::Dependency => "stream dependencies",
            IdleCause::Queue => "between queued kernels",
            IdleCause::Unrecorded => "kernels not recorded",
        }
    }

    /// Returns the cause with this key in JSON, if there is one.
    pub fn from_key(key: &str) -> Option<IdleCause> {
        IdleCause::ALL.into_iter().find(|cause| cause.key() == key)
    }
}

/// Idle time by cause; the parts add up to [`Timeline::idle`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Idle {
    parts: Parts,
}

/// An interval of device idle time within one period, and its causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Beginning.
    pub since: Nanos,
    /// End, both relative to the step of `activity`.
    pub until: Nanos,
    /// The activity whose beginning ends it.
    pub activity: ActivityId,
    /// Idle time by cause; the parts add up to the length of the wait.
    pub why: Idle,
}

/// Time by cause.
type Parts = [Nanos; IdleCause::ALL.len()];

impl Idle {
    /// Splits the device idle time of a steady step.
    pub fn measure(graph: &StepGraph, timeline: &Timeline) -> Idle {
        let mut idle = Idle::default();
        if timeline.starts.is_empty() {
            idle.parts[IdleCause::Host as usize] = timeline.period;
            return idle;
        }
        let splitter = Splitter::new(graph, timeline);
        for gap in timeline.idle_gaps() {
            idle.split(&splitter, gap);
        }
        idle.settled()
    }

    /// Splits the device idle time wait by wait, in order of time.
    pub fn waits(graph: &StepGraph, timeline: &Timeline) -> Vec<Wait> {
        let splitter = Splitter::new(graph, timeline);
        let wait = |gap: IdleGap| {
            let mut why = Idle::default();
            why.split(&splitter, gap);
            let until = timeline.starts[gap.activity];
            Wait { since: gap.since, until, activity: gap.activity, why: why.settled() }
        };
        timeline.idle_gaps().into_iter().map(wait).collect()
    }

    /// Returns the idle time of a cause.
    pub fn get(&self, cause: IdleCause) -> Nanos {
        self.parts[cause as usize]
    }

    /// Returns all causes with their time.
    pub fn iter(&self) -> impl Iterator<Item = (IdleCause, Nanos)> {
        IdleCause::ALL.into_iter().map(|cause| (cause, self.get(cause)))
    }

    /// Removes negative parts: the same amount is taken off the largest others, so that the sum stays.
    fn settled(mut self) -> Idle {
        let mut owed: Nanos = self.parts.iter().map(|part| -(*part).min(Nanos::ZERO)).sum();
        self.parts.iter_mut().for_each(|part| *part = (*part).max(Nanos::ZERO));
        while let Some(largest) = self.parts.iter_mut().max().filter(|part| **part > Nanos::ZERO)
            && owed > Nanos::ZERO
        {
            let taken = owed.min(*largest);
            *largest -= taken;
            owed -= taken;
        }
        self
    }

    fn add(&mut self, cause: IdleCause, time: Nanos) {
        self.parts[cause as usize] += time.max(Nanos::ZERO);
    }

    /// Splits one gap, up to the beginning of its activity.
    fn split(&mut self, splitter: &Splitter<'_>, IdleGap { since, activity }: IdleGap) {
        let &Splitter { graph, timeline, .. } = splitter;
        let first = splitter.order.first() == Some(&activity);
        let start = timeline.starts[activity];
        let call = &graph.calls[graph.activities[activity].call];
        let is_input = call.op.is_some_and(|op| graph.ops[op].phase == Phase::Input);
        if splitter.is_unrecorded(activity) {
            return self.add(IdleCause::Unrecorded, start - since);
        }
        let whole = match timeline.activity_causes[activity] {
            ActivityCause::Stream(_) | ActivityCause::StreamBefore(_) => Some(IdleCause::Queue),
            ActivityCause::Event(_) | ActivityCause::EventBefore(_) => Some(IdleCause::Dependency),
            // The wait for the batch ends when the host begins to copy it.
            ActivityCause::Launch if first && is_input => {
                let staged = matches!(call.blocking, Blocking::Chunked { .. });
                let copies = if staged { timeline.marks[call.begin].clamp(since, start) } else { start };
                self.add(IdleCause::Input, copies - since);
                self.add(IdleCause::Copy, start - copies);
                return;
            }
            ActivityCause::Launch => None,
        };
        match whole {
            Some(cause) => self.add(cause, start - since),
            None => {
                let parts = on_host(graph, timeline, call, since, start);
                self.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
        }
    }
}

/// Data for splitting the gaps of a step.
struct Splitter<'t> {
    graph: &'t StepGraph,
    timeline: &'t Timeline,
    /// Activities by their beginning.
    order: Vec<ActivityId>,
    /// Index of each in that order.
    places: TiVec<ActivityId, usize>,
    unrecorded: LostWork,
}

impl<'t> Splitter<'t> {
    fn new(graph: &'t StepGraph, timeline: &'t Timeline) -> Splitter<'t> {
        let order = timeline.by_start();
        let mut places: TiVec<ActivityId, usize> = vec![0; order.len()].into();
        for (place, &activity) in order.iter().enumerate() {
            places[activity] = place;
        }
        Splitter { graph, timeline, order, places, unrecorded: LostWork::find(graph, timeline) }
    }

    /// Whether a kernel that is not in the recording was launched just before an activity.
    fn is_unrecorded(&self, activity: ActivityId) -> bool {
        if self.unrecorded.is_empty() {
            return false;
        }
        let before = self.order.get(self.places[activity].wrapping_sub(1)).or(self.order.last()).copied();
        self.unrecorded.between(self.graph, self.timeline, before, activity)
    }
}

/// Splits the host time from `since` until an activity began at `start` that waited only for its launch.
fn on_host(graph: &StepGraph, timeline: &Timeline, call: &Call, since: Nanos, start: Nanos) -> Parts {
    let chunked = matches!(call.blocking, Blocking::Chunked { .. });
    let mut mark = if chunked { call.begin } else { call.end };
    let mut shift = Nanos::ZERO;
    let mut now = timeline.marks[mark];
    let mut parts = Parts::default();
    let launch = if chunked { IdleCause::Copy } else { IdleCause::Host };
    parts[launch as usize] += start - now.max(since);
    let mut waited = Nanos::ZERO;
    // Backwards along the host until the device was busy; at most once around the step.
    for _ in 0..graph.marks.len() {
        if now <= since {
            break;
        }
        let row = &graph.marks[mark];
        let cause = timeline.mark_causes[mark];
        let busy = cause == MarkCause::Busy && mark > graph.threads[row.thread].first_mark;
        let before = if busy { mark.previous() } else { row.after };
        if row.wraps && !busy {
            shift += timeline.period;
        }
        let then = timeline.marks[before] - shift;
        let what = segment_cause(graph, mark, before, cause);
        if what == IdleCause::Synchronisation {
            waited += now - then;
        }
        parts[what as usize] += now - then.max(since);
        (mark, now) = (before, then);
    }
    // Without the wait, the host would have been earlier by that time.
    let sync = IdleCause::Synchronisation as usize;
    let host = IdleCause::Host as usize;
    let owed = (waited - parts[sync]).max(Nanos::ZERO).min(parts[host]);
    parts[sync] += owed;
    parts[host] -= owed;
    parts
}

/// Returns the cause of the host time between two marks.
fn segment_cause(graph: &StepGraph, mark: MarkId, before: MarkId, cause: MarkCause) -> IdleCause {
    let waits = matches!(cause, MarkCause::Device(_) | MarkCause::DeviceBefore(_));
    match graph.marks[mark].kind {
        MarkKind::CallEnd(call) => match graph.calls[call].kind {
            ApiKind::Copy | ApiKind::BlockingCopy => IdleCause::Copy,
            _ if waits => IdleCause::Synchronisation,
            _ => IdleCause::Host,
        },
        _ if graph.marks[mark].thread != graph.marks[before].thread => IdleCause::HandOff,
        _ => IdleCause::Host,
    }
}
