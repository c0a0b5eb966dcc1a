//! Collectives of process groups that record no notes, such as PyTorch's fake one: read from the ops that request them.

use steptime_trace::{Bytes, ExecutionTrace, ProcessGroup};

use super::ExecutionGraph;
use crate::collectives::{Collective, Group};
use crate::ids::NodeId;
use crate::names::{CollectiveKind, PROCESS_GROUP};

/// Returns the collectives of ops that contain no note. The arguments do not name the group: its size is known only if the trace lists
/// groups of a single size.
pub(crate) fn find(trace: &ExecutionTrace, graph: &ExecutionGraph) -> Vec<(NodeId, Collective)> {
    let mut groups = trace.process_groups.iter();
    let unknown = ProcessGroup::default();
    let group =
        groups.next().filter(|first| groups.all(|other| other.size == first.size)).unwrap_or(&unknown);
    let noted: Vec<NodeId> = graph.collectives.keys().filter_map(|&node| graph.tree.parent(node)).collect();
    let requests = graph.ids().filter(|node| !noted.contains(node));
    requests.filter_map(|node| Some((node, collective(graph, node, group)?))).collect()
}

/// Returns the collective of an op. Received tensors come first among its arguments, then sent ones, unless both are the same memory.
fn collective(graph: &ExecutionGraph, node: NodeId, group: &ProcessGroup) -> Option<Collective> {
    let kind = CollectiveKind::from_operation(graph.node_name(node).strip_prefix(PROCESS_GROUP)?);
    if kind == CollectiveKind::Other || group.size.is_some_and(|size| size < 2) {
        return None;
    }
    let mut bytes: Vec<(usize, u64)> = Vec::new();
    for (at, tensor) in graph.input_tensors(node) {
        let more = graph.tensors.get(tensor).bytes().0;
        match bytes.last_mut().filter(|(last, _)| *last == at) {
            Some((_, sum)) => *sum += more,
            None => bytes.push((at, more)),
        }
    }
    let (_, received) = *bytes.first()?;
    Some(Collective {
        kind,
        sent: Bytes(bytes.get(1).map_or(received, |&(_, sent)| sent)),
        received: Bytes(received),
        group: Group { name: group.name.clone(), ranks: group.ranks.clone(), size: group.size },
        sequence: None,
        between: None,
        sent_to: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::fixture::{Node, trace};

    const ALL_REDUCE: &str = "c10d::allreduce_(Tensor tensor, bool async_op=True) -> Tensor";
    const ALL_GATHER: &str = "c10d::_allgather_base_(Tensor output, Tensor input) -> Tensor";

    fn recorded(sizes: &[u32]) -> ExecutionGraph {
        let all_reduce = Node::op(3, 2, ALL_REDUCE).inputs("f 10 11 100").outputs("f 10 11 100");
        let all_gather = Node::op(4, 2, ALL_GATHER).inputs("f 12 13 800;f 14 15 100").outputs("f 12 13 800");
        let mut trace = trace(&[all_reduce, all_gather]);
        trace.process_groups =
            sizes.iter().map(|&size| ProcessGroup { size: Some(size), ..ProcessGroup::default() }).collect();
        ExecutionGraph::new(&trace)
    }

    #[test]
    fn an_op_that_notes_nothing_is_a_collective_of_the_group() {
        let graph = recorded(&[8]);
        let found: Vec<_> =
            graph.collectives.values().map(|one| (one.kind, one.sent.0, one.received.0)).collect();
        assert_eq!(found, [(CollectiveKind::AllReduce, 400, 400), (CollectiveKind::AllGather, 400, 3200)]);
        assert!(graph.collectives.values().all(|one| one.group.size == Some(8)));
    }

    #[test]
    fn of_groups_of_several_sizes_none_is_known() {
        for sizes in [&[8, 4][..], &[]] {
            let graph = recorded(sizes);
            assert_eq!(graph.collectives.len(), 2, "{sizes:?}");
            assert!(graph.collectives.values().all(|one| one.group.size.is_none()), "{sizes:?}");
        }
    }

    #[test]
    fn one_rank_exchanges_nothing() {
        assert!(recorded(&[1]).collectives.is_empty());
    }
}
