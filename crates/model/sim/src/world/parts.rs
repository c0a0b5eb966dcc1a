//! Breakdown of a rank's device time in a step: own work, data transfer to other ranks, waits for them, idle time.

use steptime_graph::{ActivityId, Job, StepGraph, TiVec};
use steptime_trace::Nanos;

use super::WorldTimeline;

/// Kind of device activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runs {
    /// A kernel, copy or memset of its own.
    Own,
    /// A collective that waits for other ranks.
    Waiting,
    /// A collective whose data moves.
    Moving,
}

/// A stretch of time in which something runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub runs: Runs,
    /// Beginning.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
}

/// Times of a rank's device in a step; the first four add up to the step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// Time with work of its own.
    pub computes: Nanos,
    /// Time of data transfer to other ranks without own work.
    pub moves: Nanos,
    /// Time of waits for other ranks inside collectives, with nothing else running.
    pub waits: Nanos,
    /// Time with nothing running.
    pub idles: Nanos,
    /// Time of data transfer during own work.
    pub hidden: Nanos,
    /// Time of waits for other ranks during own work.
    pub waits_beside: Nanos,
}

impl Parts {
    /// Returns the parts of all spans between two times.
    #[must_use]
    pub fn between(begin: Nanos, end: Nanos, spans: impl IntoIterator<Item = Span>) -> Parts {
        let mut changes: Vec<(Nanos, Runs, i32)> = Vec::new();
        for span in spans {
            let (from, to) = (span.from.max(begin), span.to.min(end));
            if from < to {
                changes.extend([(from, span.runs, 1), (to, span.runs, -1)]);
            }
        }
        changes.sort_unstable();
        let (mut counts, mut reached, mut parts) = ([0i32; 3], begin, Parts::default());
        for (time, runs, by) in changes {
            parts.take(counts.map(|count| count > 0), time - reached);
            reached = time;
            counts[runs as usize] += by;
        }
        parts.idles += end - reached;
        parts
    }

    /// Adds a time in which these run.
    fn take(&mut self, [own, waiting, moving]: [bool; 3], time: Nanos) {
        if own && moving {
            self.hidden += time;
        } else if own && waiting {
            self.waits_beside += time;
        }
        *if own {
            &mut self.computes
        } else if moving {
            &mut self.moves
        } else if waiting {
            &mut self.waits
        } else {
            &mut self.idles
        } += time;
    }

    /// Returns the parts of one rank of a simulated world, in one period.
    #[must_use]
    pub fn measure(world: &WorldTimeline, job: &Job, rank: usize, graph: &StepGraph) -> Parts {
        let timeline = &world.ranks[rank];
        let begin = timeline.starts.iter().copied().min().unwrap_or(Nanos::ZERO);
        let meets = release_times(world, job, rank, graph);
        let spans = timeline.starts.keys().flat_map(|at| {
            let (start, end) = (timeline.starts[at], timeline.ends[at]);
            split(start, meets[at], end)
        });
        // Steps before and after overlap with this one. Copies for the next step may be many steps ahead of its kernels.
        let (period, end) = (timeline.period, begin + timeline.period);
        let spans = spans.flat_map(|span| {
            let periods = |time: Nanos| time.0.div_euclid(period.0.max(1));
            (periods(begin - span.to)..=periods(end - span.from)).map(move |step| {
                let shift = period * step;
                Span { from: span.from + shift, to: span.to + shift, ..span }
            })
        });
        Parts::between(begin, end, spans)
    }
}

/// Splits an activity into spans: a collective waits until the last of its ranks has arrived.
pub fn split(start: Nanos, last: Option<Nanos>, end: Nanos) -> impl Iterator<Item = Span> {
    let all = match last {
        None => [Some(Span { runs: Runs::Own, from: start, to: end }), None],
        Some(last) => [
            Some(Span { runs: Runs::Waiting, from: start, to: last }),
            Some(Span { runs: Runs::Moving, from: last, to: end }),
        ],
    };
    all.into_iter().flatten()
}

/// Returns for each activity that meets others the time of its release, relative to the rank's own first mark.
fn release_times(
    world: &WorldTimeline,
    job: &Job,
    rank: usize,
    graph: &StepGraph,
) -> TiVec<ActivityId, Option<Nanos>> {
    let let_go = |at: steptime_graph::RendezvousId| {
        let place = job.rendezvous[at].members.iter().position(|member| member.rank == rank)?;
        Some(world.rendezvous[at].release_time(place) - world.offsets[rank])
    };
    job.rendezvous_of_rank(rank, graph).into_iter().map(|at| let_go(at?)).collect()
}

impl std::ops::Add for Parts {
    type Output = Parts;

    fn add(self, other: Parts) -> Parts {
        Parts {
            computes: self.computes + other.computes,
            moves: self.moves + other.moves,
            waits: self.waits + other.waits,
            idles: self.idles + other.idles,
            hidden: self.hidden + other.hidden,
            waits_beside: self.waits_beside + other.waits_beside,
        }
    }
}

impl std::ops::Div<i64> for Parts {
    type Output = Parts;

    fn div(self, by: i64) -> Parts {
        Parts {
            computes: self.computes / by,
            moves: self.moves / by,
            waits: self.waits / by,
            idles: self.idles / by,
            hidden: self.hidden / by,
            waits_beside: self.waits_beside / by,
        }
    }
}
