//! Ranks of a job, and the activities that form one collective across them.

mod groups;
mod measured;

use rustc_hash::FxHashMap;
use steptime_trace::Bytes;
use typed_index_collections::TiVec;

pub use self::measured::{Arrival, RendezvousTimes};
use crate::collectives::{Collective, Group};
use crate::graph::StepGraph;
use crate::ids::{ActivityId, RendezvousId};
use crate::names::CollectiveKind;

/// Matching of the activities of a job's ranks to collectives.
///
/// Collectives of a group are matched by their order, which NCCL requires to be the same on every rank. A group is identified by its name, otherwise
/// by its ranks; a rank that recorded neither is assumed to be in the job's only group.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Collectives of a step, in the order of the first rank's.
    pub rendezvous: TiVec<RendezvousId, Rendezvous>,
}

/// Collective across ranks: no rank continues before all have arrived, or before its root has.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendezvous {
    /// Operation.
    pub kind: CollectiveKind,
    /// Ranks that take part.
    pub group: Group,
    /// Maximum number of bytes that one rank sends or receives.
    pub bytes: Bytes,
    /// Activity of each recorded rank.
    pub members: Vec<Member>,
}

impl Rendezvous {
    /// Returns the index of the member that all others wait for, if there is only one: for a broadcast or scatter, the first rank is assumed to be
    /// the
    /// root, as it is in PyTorch's own broadcasts.
    #[must_use]
    pub fn root(&self) -> Option<usize> {
        matches!(self.kind, CollectiveKind::Broadcast | CollectiveKind::Scatter).then_some(0)
    }
}

/// Part of one rank in a rendezvous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Index of the rank among the given ranks.
    pub rank: usize,
    /// Activity of the rank.
    pub activity: ActivityId,
}

/// Collectives that do not match: run together, these ranks would wait forever.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Two ranks run different collectives.
    #[error(
        "{group}, collective {nth} of the step: rank {} does {}, rank {} {}: they would wait for each other for ever; \
         are these ranks of one job, and of the same step?",
        ranks[0], what[0], ranks[1], what[1]
    )]
    Differ {
        /// Title of the group.
        group: String,
        /// Index of the collective in the group, from 1.
        nth: usize,
        /// Numbers of two ranks.
        ranks: [u32; 2],
        /// Collective of each rank.
        what: [String; 2],
    },
    /// One rank has more collectives than another.
    #[error(
        "{group}: rank {} takes part in {} collectives of the step, rank {} in {}: it would wait for ever; \
         are these ranks of one job, and is each trace whole?",
        ranks[0], counts[0], ranks[1], counts[1]
    )]
    Missing {
        /// Title of the group.
        group: String,
        /// Numbers of two ranks.
        ranks: [u32; 2],
        /// Number of collectives of each rank.
        counts: [usize; 2],
    },
}

/// Key of collectives that are matched one by one, in order: the group, and for messages also sender and receiver.
type Line = (usize, Option<[u32; 2]>);

impl Job {
    /// Matches the collectives of a job's ranks, given as rank number and step.
    ///
    /// # Errors
    /// If they do not match.
    pub fn from_ranks(ranks: &[(u32, &StepGraph)]) -> Result<Job, Mismatch> {
        let groups = groups::find(ranks);
        let mut lines: Vec<Line> = Vec::new();
        let mut by_line: FxHashMap<Line, Vec<(usize, Vec<ActivityId>)>> = FxHashMap::default();
        for (place, (_, graph)) in ranks.iter().enumerate() {
            for activity in in_order(graph) {
                let Some(collective) = collective(graph, activity) else { continue };
                let line = (groups.index(&collective.group), collective.between);
                let members = by_line.entry(line).or_insert_with(|| {
                    lines.push(line);
                    Vec::new()
                });
                match members.last_mut() {
                    Some((last, all)) if *last == place => all.push(activity),
                    _ => members.push((place, vec![activity])),
                }
            }
        }
        let mut rendezvous: Vec<Rendezvous> = Vec::new();
        for line in lines {
            let group = groups.get(line.0);
            if line.1.is_none() {
                all_take_part(ranks, group, &by_line[&line])?;
            }
            rendezvous.extend(matched(ranks, group, &by_line[&line])?);
        }
        Ok(Job { rendezvous: rendezvous.into() })
    }

    /// Returns the rendezvous of each activity of a rank.
    #[must_use]
    pub fn rendezvous_of_rank(
        &self,
        rank: usize,
        graph: &StepGraph,
    ) -> TiVec<ActivityId, Option<RendezvousId>> {
        let mut of: TiVec<ActivityId, Option<RendezvousId>> = vec![None; graph.activities.len()].into();
        for (at, rendezvous) in self.rendezvous.iter_enumerated() {
            for member in rendezvous.members.iter().filter(|member| member.rank == rank) {
                of[member.activity] = Some(at);
            }
        }
        of
    }
}

/// Returns the collective of an activity.
fn collective(graph: &StepGraph, activity: ActivityId) -> Option<&Collective> {
    Some(&graph.collectives[graph.activities[activity].collective?])
}

/// Returns a step's collectives in the order in which they began.
fn in_order(graph: &StepGraph) -> Vec<ActivityId> {
    let own = |&at: &ActivityId| graph.activities[at].collective.is_some();
    let mut all: Vec<ActivityId> = graph.activities.keys().filter(own).collect();
    let samples = &graph.samples;
    let step = samples.steps().find(|&step| all.iter().all(|&at| samples.activity_start(step, at).is_some()));
    match step {
        Some(step) => all.sort_by_key(|&at| samples.activity_start(step, at)),
        None => {
            let calls: FxHashMap<_, usize> =
                graph.calls_by_hand_off().into_iter().enumerate().map(|(at, call)| (call, at)).collect();
            all.sort_by_key(|&at| calls.get(&graph.activities[at].call).copied());
        }
    }
    all
}

/// Checks that every given rank of a group takes part in the group's collectives.
fn all_take_part(
    ranks: &[(u32, &StepGraph)],
    group: &Group,
    members: &[(usize, Vec<ActivityId>)],
) -> Result<(), Mismatch> {
    let everyone = group.size.is_some_and(|size| size as usize == ranks.len());
    let belongs = |number: u32| everyone || group.ranks.contains(&number);
    let absent = |place: &usize| members.iter().all(|(member, _)| member != place);
    let missing = (0..ranks.len()).find(|place| belongs(ranks[*place].0) && absent(place));
    match (missing, members.first()) {
        (Some(place), Some((first, theirs))) => Err(Mismatch::Missing {
            group: group.title(),
            ranks: [ranks[*first].0, ranks[place].0],
            counts: [theirs.len(), 0],
        }),
        _ => Ok(()),
    }
}

/// Matches the n-th collective of each rank.
fn matched(
    ranks: &[(u32, &StepGraph)],
    group: &Group,
    members: &[(usize, Vec<ActivityId>)],
) -> Result<Vec<Rendezvous>, Mismatch> {
    let Some((first, theirs)) = members.first() else { return Ok(Vec::new()) };
    if let Some((other, own)) = members.iter().find(|(_, own)| own.len() != theirs.len()) {
        return Err(Mismatch::Missing {
            group: group.title(),
            ranks: [ranks[*first].0, ranks[*other].0],
            counts: [theirs.len(), own.len()],
        });
    }
    (0..theirs.len())
        .map(|nth| {
            let all: Vec<Member> =
                members.iter().map(|(rank, own)| Member { rank: *rank, activity: own[nth] }).collect();
            let of = |member: &Member| collective(ranks[member.rank].1, member.activity);
            let Some(lead) = of(&all[0]) else { return Ok(None) };
            for member in &all[1..] {
                let Some(own) = of(member) else { continue };
                if !agree(lead, own) {
                    return Err(Mismatch::Differ {
                        group: group.title(),
                        nth: nth + 1,
                        ranks: [ranks[*first].0, ranks[member.rank].0],
                        what: [describe(lead), describe(own)],
                    });
                }
            }
            let bytes = all.iter().filter_map(of).map(Collective::bytes).max().unwrap_or(Bytes(0));
            let kind = all
                .iter()
                .filter_map(of)
                .find(|own| own.bytes() > Bytes(0))
                .map_or(lead.kind, |own| own.kind);
            Ok(Some(Rendezvous { kind, group: group.clone(), bytes, members: all }))
        })
        .filter_map(Result::transpose)
        .collect()
}

/// Whether two ranks run the same collective, as far as both recorded it.
fn agree(a: &Collective, b: &Collective) -> bool {
    use CollectiveKind as K;
    // A kernel name alone does not distinguish all-to-all from messages.
    let exchange = |kind: K| matches!(kind, K::AllToAll | K::SendReceive | K::Other);
    let alike =
        a.kind == b.kind || a.kind == K::Other || b.kind == K::Other || exchange(a.kind) && exchange(b.kind);
    let equal = matches!(a.kind, K::AllReduce | K::Broadcast) && a.sent > Bytes(0) && b.sent > Bytes(0);
    alike && (!equal || a.sent == b.sent)
}

fn describe(collective: &Collective) -> String {
    format!("{} of {} bytes", collective.kind.name(), collective.bytes().0)
}
