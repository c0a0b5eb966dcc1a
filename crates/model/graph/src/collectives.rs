//! Collectives of a step, as one rank of the job records them.

pub(crate) mod arguments;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use steptime_trace::{
    ActivityKind, Bytes, Carrier, Collective as Recorded, ExecutionTrace, NameId, ProcessGroup, Strings,
    Trace,
};
use typed_index_collections::{TiSlice, TiVec};

use crate::ids::{ActivityId, CollectiveId, NodeId, OpId};
use crate::names::CollectiveKind;
use crate::names::collective::element_bytes;
use crate::tables::{Activity, Call, Op, OpOrigin};

/// Collective from the point of view of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Collective {
    /// Operation.
    pub kind: CollectiveKind,
    /// Bytes that this rank sends; zero if not recorded.
    pub sent: Bytes,
    /// Bytes that this rank receives.
    pub received: Bytes,
    /// Ranks that take part.
    pub group: Group,
    /// Sequence number in its group, if recorded.
    pub sequence: Option<i64>,
    /// Sending and receiving rank of a point-to-point message.
    pub between: Option<[u32; 2]>,
    /// Bytes sent to each rank of the group, if they differ.
    pub sent_to: Vec<Bytes>,
}

/// The process group of a collective, as far as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Name, the same on every rank.
    pub name: String,
    /// Ranks; empty if they were not recorded, or not all of them.
    pub ranks: Vec<u32>,
    /// Number of ranks.
    pub size: Option<u32>,
}

impl Group {
    /// Returns a title for people: the name and the number of ranks.
    #[must_use]
    pub fn title(&self) -> String {
        let name = if self.name.is_empty() { "without a name" } else { &self.name };
        match self.size {
            Some(size) => format!("group {name} of {size}"),
            None => format!("group {name}"),
        }
    }
}

/// Finds the collectives among a step's activities, and marks the activities with them.
pub(crate) fn find(
    trace: &Trace,
    ops: &TiSlice<OpId, Op>,
    calls: &TiSlice<crate::ids::CallId, Call>,
    activities: &mut TiSlice<ActivityId, Activity>,
) -> TiVec<CollectiveId, Collective> {
    let kinds: Vec<Option<CollectiveKind>> =
        trace.names.iter().map(|(_, name)| CollectiveKind::from_kernel(name)).collect();
    let mut of_activities: FxHashMap<u32, &Recorded> = FxHashMap::default();
    let mut of_ops: FxHashMap<u32, &Recorded> = FxHashMap::default();
    for recorded in &trace.collectives {
        match recorded.carrier {
            Carrier::Activity(at) => of_activities.insert(at, recorded),
            Carrier::Op(op) => of_ops.insert(op, recorded),
            Carrier::Node(_) => None,
        };
    }
    let around = |activity: &Activity| {
        let mut op = calls[activity.call].op;
        while let Some(at) = op {
            let row = &ops[at];
            if let OpOrigin::Timing(recorded) = row.origin
                && let Some(found) = of_ops.get(&(recorded.index() as u32))
            {
                return Some(*found);
            }
            op = row.parent;
        }
        None
    };
    let mut found: TiVec<CollectiveId, Collective> = TiVec::new();
    for activity in activities.iter_mut() {
        let Some(row) = activity.recorded.filter(|_| activity.kind == ActivityKind::Kernel) else { continue };
        let own = of_activities.get(&(row.index() as u32)).copied();
        let kind = kinds[activity.name.index()];
        if own.is_none() && kind.is_none() {
            continue;
        }
        let said = own.or_else(|| around(activity));
        let groups = trace.distributed.as_ref().map_or(&[][..], |all| &all.groups);
        let known = CollectiveContext { names: &trace.names, groups };
        activity.collective = Some(found.push_and_get_key(Collective::new(&known, said, kind)));
    }
    found
}

/// Returns the collectives of an execution trace, by the node on which each was recorded. Waiting for a collective does not count as one.
pub(crate) fn by_node(trace: &ExecutionTrace) -> BTreeMap<NodeId, Collective> {
    let known = CollectiveContext { names: &trace.names, groups: &trace.process_groups };
    let of = |recorded: &Recorded| {
        let Carrier::Node(row) = recorded.carrier else { return None };
        let collective = Collective::new(&known, Some(recorded), None);
        (collective.kind != CollectiveKind::Other).then_some((NodeId::at(row as usize), collective))
    };
    let mut found: BTreeMap<NodeId, Collective> = arguments::find(trace).into_iter().collect();
    found.extend(trace.collectives.iter().filter_map(of));
    found
}

/// Data about collectives from other parts of the trace.
struct CollectiveContext<'t> {
    names: &'t Strings,
    groups: &'t [ProcessGroup],
}

impl Collective {
    fn new(
        known: &CollectiveContext<'_>,
        said: Option<&Recorded>,
        kernel: Option<CollectiveKind>,
    ) -> Collective {
        let other = kernel.unwrap_or(CollectiveKind::Other);
        let Some(said) = said else {
            let (group, zero) = (Group::default(), Bytes(0));
            return Collective {
                kind: other,
                sent: zero,
                received: zero,
                group,
                sequence: None,
                between: None,
                sent_to: Vec::new(),
            };
        };
        let text = |name: Option<NameId>| name.map_or("", |name| known.names.get(name));
        let told = CollectiveKind::from_operation(known.names.get(said.name));
        let bytes = element_bytes(text(said.dtype)).unwrap_or(0);
        let of_elements = |elements: u64| Bytes(elements.saturating_mul(bytes));
        let name = text(said.group_name).to_owned();
        let listed = known.groups.iter().find(|group| group.name == name).map(|group| group.ranks.clone());
        let written = text(said.group_ranks);
        let ranks = if written.contains("...") { Vec::new() } else { numbers(written) };
        let ranks = if ranks.is_empty() { listed.unwrap_or_default() } else { ranks };
        let rank = |number: Option<i64>| u32::try_from(number?).ok();
        let size = said.group_size.or(u32::try_from(ranks.len()).ok().filter(|&size| size > 0));
        let between = match (rank(said.source_rank), rank(said.target_rank)) {
            (Some(from), Some(to)) if from != to => Some([from, to]),
            _ => None,
        };
        Collective {
            kind: if told == CollectiveKind::Other { other } else { told },
            sent: of_elements(said.in_elements),
            received: of_elements(said.out_elements),
            group: Group { name, ranks, size },
            sequence: said.sequence,
            between,
            sent_to: numbers(text(said.in_split)).into_iter().map(|n| of_elements(u64::from(n))).collect(),
        }
    }

    /// Returns the larger of the bytes that this rank sends and receives.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.sent.max(self.received)
    }
}

/// Returns the numbers of a list in text form: `[0, 1]`.
fn numbers(list: &str) -> Vec<u32> {
    list.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
