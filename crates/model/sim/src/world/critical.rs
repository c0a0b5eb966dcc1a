//! The critical path of a job: it changes ranks at their meetings.

use steptime_graph::{Job, RendezvousId, StepGraph};
use steptime_trace::Nanos;

use super::WorldTimeline;
use crate::critical::{Node, Place, Stretch, before_activity, before_mark, last};

/// A stretch of the path on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Index of the rank.
    pub rank: usize,
    /// Stretch on that rank; times are relative to the first mark of the first rank.
    pub stretch: Stretch,
    /// Rendezvous, if the stretch is data moving between ranks.
    pub meets: Option<RendezvousId>,
}

/// Returns the chain of host time, device activities and collectives that determines the duration of a steady step of all ranks, in order of
/// time. Its stretches join without gaps and last one period.
#[must_use]
pub fn path(graphs: &[&StepGraph], job: &Job, world: &WorldTimeline) -> Vec<Passage> {
    let ends = world.ranks.iter().enumerate().filter_map(|(rank, timeline)| {
        let (node, time) = last(timeline)?;
        Some((time + world.offsets[rank], rank, node))
    });
    let Some((mut to, mut rank, mut node)) =
        ends.max_by_key(|&(time, rank, _)| (time, std::cmp::Reverse(rank)))
    else {
        return Vec::new();
    };
    let meets: Vec<_> =
        graphs.iter().enumerate().map(|(rank, graph)| job.rendezvous_of_rank(rank, graph)).collect();
    let stop = to - world.period;
    let mut shift = Nanos::ZERO;
    let mut path = Vec::new();
    let most: usize =
        2 * graphs.iter().map(|graph| graph.marks.len() + graph.activities.len()).sum::<usize>();
    for _ in 0..most {
        if to <= stop {
            break;
        }
        if let Node::Activity(activity) = node {
            let met = meets[rank][activity];
            // A waiting member is on the path from the arrival of the last one, and the path continues through that one.
            let (begin, from_rank, from_activity) = match met {
                Some(at) => {
                    let (meeting, members) = (&world.rendezvous[at], &job.rendezvous[at].members);
                    let place = members.iter().position(|member| member.rank == rank).unwrap_or(0);
                    let late = members[meeting.held_by(place)];
                    (meeting.release_time(place), late.rank, late.activity)
                }
                None => (world.ranks[rank].starts[activity] + world.offsets[rank], rank, activity),
            };
            let begin = begin - shift;
            if to > begin {
                let stretch = Stretch { place: Place::Device(activity), from: begin.max(stop), to };
                path.push(Passage { rank, stretch, meets: met });
                to = begin;
            }
            (rank, node) = (from_rank, Node::Activity(from_activity));
            if to <= stop {
                break;
            }
        }
        let timeline = &world.ranks[rank];
        let (place, before, from) = match node {
            Node::Mark(mark) => before_mark(graphs[rank], timeline, mark, &mut shift),
            Node::Activity(activity) => before_activity(graphs[rank], timeline, activity, &mut shift),
        };
        let from = (from + world.offsets[rank]).min(to);
        if from < to {
            path.push(Passage { rank, stretch: Stretch { place, from: from.max(stop), to }, meets: None });
        }
        (node, to) = (before, from);
    }
    path.reverse();
    path
}
