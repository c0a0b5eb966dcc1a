//! Work and waiting of a job's ranks as recorded.

use steptime_graph::{ActivityId, Clock, Job, RendezvousId, StepGraph, StepId, TiVec, median};
use steptime_sim::world::{Parts, Span, split};
use steptime_trace::Nanos;

use super::JobGraphs;
use super::rendezvous::{CollectiveMeeting, Meetings, count};
use super::stragglers::{Straggler, stragglers};
use crate::uncertainty::uncertainty;

/// The recorded steps of a job.
#[derive(Debug, Clone)]
pub struct JobRecording {
    /// Number of steps that all ranks recorded; times are means over the middle half of them, by the first rank's period.
    pub steps: usize,
    /// Time from one step to the next.
    pub period: Nanos,
    /// One entry per rank.
    pub ranks: Vec<MeasuredRank>,
    /// Common collectives of the ranks.
    pub collectives: Vec<CollectiveMeeting>,
    /// Ranks that others waited for, with causes; worst first.
    pub stragglers: Vec<Straggler>,
}

/// One rank of a recorded job, profiler included.
#[derive(Debug, Clone)]
pub struct MeasuredRank {
    /// Time of its device in a step, by activity.
    pub parts: Parts,
    /// Lead of its clock over the first rank's, from the ends of collectives.
    pub ahead: Nanos,
    /// Variation of that lead between steps: half the range of the middle half.
    pub scatter: Nanos,
}

impl JobRecording {
    /// Whether the ranks can be from one run: then they leave a collective together in every step.
    #[must_use]
    pub fn is_one_run(&self) -> bool {
        let most = self.period.0 as f64 * uncertainty().ranks.one_run;
        self.steps < 3 || self.ranks.iter().all(|rank| rank.scatter.0 as f64 <= most)
    }
}

impl JobGraphs<'_> {
    /// Summarises the ranks as recorded; `None` where no step was recorded by all of them.
    #[must_use]
    pub fn recorded(&self) -> Option<JobRecording> {
        let common = Job::common_steps(&self.graphs);
        let steps = middle_half(self.graphs.first()?, &common);
        let met = Meetings::find(self, &common);
        let chosen: Vec<usize> = steps.iter().map(|&(at, _)| at).collect();
        let period = steps.iter().map(|&(_, period)| period).sum::<Nanos>() / count(&chosen);
        let collectives = self.job.rendezvous.keys().filter_map(|at| met.over(at, &chosen)).collect();
        let ranks = (0..self.graphs.len()).map(|rank| self.rank(rank, &common, &chosen, &met)).collect();
        let stragglers = stragglers(self, &met, &chosen, &common);
        let steps = common.len();
        (!chosen.is_empty()).then_some(JobRecording { steps, period, ranks, collectives, stragglers })
    }

    fn rank(&self, rank: usize, common: &[Vec<StepId>], chosen: &[usize], met: &Meetings) -> MeasuredRank {
        let of = self.job.rendezvous_of_rank(rank, self.graphs[rank]);
        let sum = chosen
            .iter()
            .map(|&at| parts(self.graphs[rank], rank, &of, common, at, met))
            .fold(Parts::default(), |sum, parts| sum + parts);
        let mut ahead: Vec<Nanos> = self.ends_apart(rank, &self.graphs, common);
        let scatter = half_range(&mut ahead);
        MeasuredRank { parts: sum / count(chosen), ahead: median(&mut ahead).unwrap_or_default(), scatter }
    }

    /// Differences between the ends of collectives by a rank's clock and by the first rank's.
    fn ends_apart(&self, rank: usize, graphs: &[&StepGraph], steps: &[Vec<StepId>]) -> Vec<Nanos> {
        let shared = self.job.rendezvous.iter().filter_map(|met| {
            let of = |rank: usize| met.members.iter().find(|member| member.rank == rank).map(|m| m.activity);
            Some((of(0)?, of(rank)?))
        });
        let shared: Vec<_> = shared.collect();
        let apart = |step: &Vec<StepId>| {
            let ends = shared.iter().filter_map(|&(first, own)| {
                let (zero, end) = (
                    graphs[0].samples.activity_end(step[0], first)?,
                    graphs[rank].samples.activity_end(step[rank], own)?,
                );
                Some(end - zero)
            });
            median(&mut ends.collect::<Vec<Nanos>>())
        };
        steps.iter().filter_map(apart).collect()
    }
}

/// Time of a rank's device by activity in one of the common steps, including work launched by neighbouring steps that ran in it.
fn parts(
    graph: &StepGraph,
    rank: usize,
    of: &TiVec<ActivityId, Option<RendezvousId>>,
    common: &[Vec<StepId>],
    at: usize,
    met: &Meetings,
) -> Parts {
    let samples = &graph.samples;
    let (begin, end) = window(graph, common[at][rank]);
    let near = at.saturating_sub(2)..(at + 2).min(common.len());
    let spans = near.flat_map(|near| {
        let step = common[near][rank];
        graph.activities.keys().filter_map(move |activity| {
            let start = samples.activity_start(step, activity)?;
            let end = samples.activity_end(step, activity)?;
            // Where a part of a rendezvous was not recorded, all time of the others counts as moving.
            let last = of[activity].map(|at| met.at(near, at).map_or(start, |met| end - met.moving));
            Some(split(start, last, end))
        })
    });
    let spans: Vec<Span> = spans.flatten().collect();
    Parts::between(begin, end, spans)
}

/// Begin and end of a step, by its clock: until the next step begins on the host; where the host runs ahead, from when the
/// device is done with it until it is done with the next. A last step ends when everything that it launched is done.
fn window(graph: &StepGraph, step: StepId) -> (Nanos, Nanos) {
    let samples = &graph.samples;
    let start = samples.start(step);
    let done = samples.device_end(step);
    match (samples.clock(), done, period(graph, step)) {
        (Clock::Device, Some(done), Some(period)) => (done, done + period),
        (_, _, Some(period)) => (start, start + period),
        (_, done, None) => {
            (start, samples.period(step).map(|period| start + period).or(done).unwrap_or(start))
        }
    }
}

/// Duration of a step, by its clock; `None` for the last one.
fn period(graph: &StepGraph, step: StepId) -> Option<Nanos> {
    match graph.samples.clock() {
        Clock::Host => graph.samples.host_period(step),
        Clock::Device => graph.samples.period(step),
    }
}

/// Indices and periods of the common steps whose period is in the middle half, by the first rank. The last step has no period, and is
/// left out where there are others.
fn middle_half(graph: &StepGraph, common: &[Vec<StepId>]) -> Vec<(usize, Nanos)> {
    let timed = common.iter().enumerate().filter_map(|(at, step)| Some((period(graph, step[0])?, at)));
    let mut timed: Vec<(Nanos, usize)> = timed.collect();
    if timed.is_empty() {
        let length = |step| {
            let (begin, end) = window(graph, step);
            end - begin
        };
        return common.iter().enumerate().map(|(at, step)| (at, length(step[0]))).collect();
    }
    timed.sort_unstable();
    let out = timed.len() / 4;
    timed[out..timed.len() - out].iter().map(|&(period, at)| (at, period)).collect()
}

/// Half the range of the middle half.
fn half_range(times: &mut [Nanos]) -> Nanos {
    times.sort_unstable();
    let at =
        |share: usize| times.get((times.len().saturating_sub(1)) * share / 4).copied().unwrap_or_default();
    (at(3) - at(1)) / 2
}
