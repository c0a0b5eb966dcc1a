//! Runs a priced graph to its steady state and keeps the last step.

use std::collections::BTreeMap;
use steptime_cost::PricedGraph;

use steptime_graph::{ActivityId, MarkId, StepGraph, TiVec, union};
use steptime_trace::Nanos;

use crate::cause::{ActivityCause, MarkCause};
use crate::engine::Engine;
use crate::period::Period;

/// Number of steps before and after whose activities may run within a step's period.
const OVERLAP: i64 = 3;

/// An interval of device idle time, relative to the step of the activity that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdleGap {
    /// Beginning.
    pub since: Nanos,
    /// The activity whose beginning ends it.
    pub activity: ActivityId,
}

/// A step in its steady state: the times of all events, and their causes.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Time from one step to the next.
    pub period: Nanos,
    /// Time at which each mark is passed; the first of the main thread at zero.
    pub marks: TiVec<MarkId, Nanos>,
    /// Cause of that time.
    pub mark_causes: TiVec<MarkId, MarkCause>,
    /// Beginning of each device activity.
    pub starts: TiVec<ActivityId, Nanos>,
    /// End of each device activity.
    pub ends: TiVec<ActivityId, Nanos>,
    /// Cause of its beginning.
    pub activity_causes: TiVec<ActivityId, ActivityCause>,
    /// Number of steps until the period settled.
    pub steps: usize,
}

impl Timeline {
    /// Simulates steps one after the other until their period settles.
    pub fn simulate(priced: &PricedGraph<'_>) -> Timeline {
        let mut engine = Engine::from_priced(priced);
        let mut period = Period::begin(engine.progress());
        loop {
            engine.step(&priced.host.gaps, &priced.durations);
            if period.is_settled(engine.progress(), || engine.completion()) {
                break;
            }
        }
        let (steps, period) = (period.steps(), period.get());
        Timeline::from_engine(engine, period, steps)
    }

    pub(crate) fn from_engine(engine: Engine<'_>, period: Nanos, steps: usize) -> Timeline {
        let zero = engine.marks.first().copied().unwrap_or(Nanos::ZERO);
        Timeline {
            period,
            marks: engine.marks.into_iter().map(|time| time - zero).collect(),
            mark_causes: engine.mark_causes,
            starts: engine.starts.into_iter().map(|time| time - zero).collect(),
            ends: engine.ends.into_iter().map(|time| time - zero).collect(),
            activity_causes: engine.activity_causes,
            steps,
        }
    }

    /// Returns device activities, by their beginning.
    pub fn by_start(&self) -> Vec<ActivityId> {
        let mut order: Vec<ActivityId> = self.starts.keys().collect();
        order.sort_by_key(|&a| (self.starts[a], self.ends[a], a));
        order
    }

    /// Returns the times within one period in which no activity of any step runs, each up to the activity that ends it.
    ///
    /// The period begins with the step's first activity; activities of the steps before may reach into it.
    pub(crate) fn idle_gaps(&self) -> Vec<IdleGap> {
        let order = self.by_start();
        let Some(&first) = order.first() else { return Vec::new() };
        let begin = self.starts[first];
        let end = begin + self.period;
        let mut running: Vec<(Nanos, Nanos, ActivityId, Nanos)> = (-OVERLAP..=OVERLAP)
            .flat_map(|step| {
                let shift = self.period * step;
                order.iter().map(move |&a| (self.starts[a] + shift, self.ends[a] + shift, a, shift))
            })
            .filter(|&(start, stop, ..)| stop >= begin && start <= end)
            .collect();
        // The activities of each step are in order, which makes the sort fast.
        running.sort();
        let mut gaps = Vec::new();
        let mut reached = begin;
        for (start, stop, activity, shift) in running {
            if reached >= end {
                break;
            }
            if start > reached {
                gaps.push(IdleGap { since: reached - shift, activity });
            }
            reached = reached.max(stop);
        }
        gaps
    }

    /// Returns the device active time of a period: the time in which any activity, of any step, runs.
    pub fn active(&self) -> Nanos {
        if self.starts.is_empty() {
            return Nanos::ZERO;
        }
        let idle = self.idle_gaps().into_iter().map(|gap| self.starts[gap.activity] - gap.since);
        self.period - idle.sum()
    }

    /// Returns the device active time of the step's own activities, device by device, in the order of their numbers.
    pub fn active_by_device(&self, graph: &StepGraph) -> Vec<(u32, Nanos)> {
        let mut spans: BTreeMap<u32, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for (at, activity) in graph.activities.iter_enumerated() {
            let device = graph.streams[activity.stream].device;
            spans.entry(device).or_default().push((self.starts[at], self.ends[at]));
        }
        let busy = |(device, mut spans): (u32, Vec<(Nanos, Nanos)>)| {
            spans.sort_unstable();
            (device, union(&spans))
        };
        spans.into_iter().map(busy).collect()
    }

    /// Returns the device idle time of the step.
    pub fn idle(&self) -> Nanos {
        (self.period - self.active()).max(Nanos::ZERO)
    }
}
