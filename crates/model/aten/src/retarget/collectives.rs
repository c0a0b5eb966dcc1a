//! Collectives of a process group that is not NCCL: it computes or copies what NCCL would send.

use steptime_graph::names::PROCESS_GROUP;

use super::branch::Branch;

/// Leaves out what such a group does itself.
pub(super) fn sent(branches: &mut [Branch]) {
    for branch in branches {
        if branch.exchange.is_some() && branch.name().starts_with(PROCESS_GROUP) {
            branch.children.clear();
        }
        sent(&mut branch.children);
    }
}
