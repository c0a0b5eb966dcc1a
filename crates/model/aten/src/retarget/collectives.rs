//! Collectives of a process group other than NCCL, which computes or copies the data that NCCL would send.

use steptime_graph::names::PROCESS_GROUP;

use super::branch::Branch;

/// Removes the ops that such a group runs itself.
pub(super) fn remove_inner_ops(branches: &mut [Branch]) {
    for branch in branches {
        if branch.exchange.is_some() && branch.name().starts_with(PROCESS_GROUP) {
            branch.children.clear();
        }
        remove_inner_ops(&mut branch.children);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::OpCall;
    use crate::derive::exchange::Exchange;
    use steptime_graph::names::CollectiveKind;
    use steptime_graph::{Collective, Group};
    use steptime_trace::Bytes;

    #[test]
    fn copies_in_the_place_of_a_collective_are_left_out() {
        let copy = || Branch::new(OpCall::new("aten::copy_", Vec::new()), Vec::new());
        let op = |exchange| {
            let mut op = Branch::new(OpCall::new("c10d::_allgather_base_", Vec::new()), vec![copy(), copy()]);
            op.exchange = exchange;
            op
        };
        let collective = Collective {
            kind: CollectiveKind::AllGather,
            sent: Bytes(4),
            received: Bytes(32),
            group: Group::default(),
            sequence: None,
            between: None,
            sent_to: Vec::new(),
        };
        let exchange = Exchange { collective, beside: true, memory: Vec::new(), awaited_by: None };
        let mut branches = [op(Some(Box::new(exchange))), op(None)];
        remove_inner_ops(&mut branches);
        assert_eq!(branches.map(|branch| branch.children.len()), [0, 2]);
    }
}
