//! Exchanges of an op with other ranks, and the calls that NCCL makes for them.

use std::num::NonZeroU64;

use steptime_graph::execution::{ExecutionGraph, NodeId};
use steptime_graph::names::cuda::{
    CAPTURING, DRIVER_LAUNCH_EX, EVENT_RECORD, EVENT_RECORD_WITH_FLAGS, FUNCTION_BY_SYMBOL, STREAM_WAIT,
    UNNAMED,
};
use steptime_graph::names::{CollectiveKind, PROCESS_GROUP};
use steptime_graph::{Blocking, Collective};
use steptime_trace::ActivityKind;

use super::calls::{RuntimeCall, Work};
use crate::call::{Arg, OpCall};
use crate::from_execution;

pub use steptime_graph::names::COLLECTIVE_NOTE as NOTE;

/// Node that waits for other ranks, or sends them data.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Operation and ranks.
    pub collective: Collective,
    /// Whether it runs on its own stream, concurrently with later launches.
    pub beside: bool,
    /// Memory that it reads and writes.
    pub memory: Vec<NonZeroU64>,
    /// Node of the execution trace that waits for it, if recorded.
    pub awaited_by: Option<NodeId>,
}

impl Exchange {
    /// Returns the exchange of a node of an execution trace; `None` if the node has none.
    pub(super) fn find(graph: &ExecutionGraph, node: NodeId) -> Option<Exchange> {
        let collective = graph.collectives.get(&node)?.clone();
        // It is recorded inside the op that requests it, or not at all.
        let mut ops = std::iter::once(node).chain(graph.tree.parent(node));
        let asked = ops.find(|&op| graph.node_name(op).starts_with(PROCESS_GROUP));
        let call = asked.map(|op| from_execution::op_call(graph, op));
        // If this is not recorded, as by PyTorch before 2.1, all exchanges ran on their own streams.
        let beside = call.as_ref().is_none_or(|call| {
            call.inputs.iter().rev().find_map(|arg| match arg {
                Arg::Bool(later) => Some(*later),
                _ => None,
            }) != Some(false)
        });
        let mut memory = memory(&from_execution::op_call(graph, node));
        memory.extend(call.iter().flat_map(self::memory));
        Some(Exchange { collective, beside, memory, awaited_by: graph.awaited.get(&node).copied() })
    }

    /// Returns the runtime calls that NCCL makes for it, inside NCCL's label.
    pub(super) fn launch(&self) -> Vec<RuntimeCall> {
        launched(self.collective.kind)
    }
}

/// Returns the names of the op that requests a collective, and of NCCL's label around its launch.
#[must_use]
pub fn names(kind: CollectiveKind) -> (&'static str, &'static str) {
    match kind {
        CollectiveKind::AllReduce => ("c10d::allreduce_", "nccl:all_reduce"),
        CollectiveKind::Broadcast => ("c10d::broadcast_", "nccl:broadcast"),
        CollectiveKind::AllGather => ("c10d::_allgather_base_", "nccl:_all_gather_base"),
        CollectiveKind::ReduceScatter => ("c10d::_reduce_scatter_base_", "nccl:_reduce_scatter_base"),
        CollectiveKind::AllToAll => ("c10d::alltoall_base_", "nccl:all_to_all"),
        _ => ("c10d::send", "nccl:send"),
    }
}

/// Returns the runtime calls that NCCL makes for a collective, inside NCCL's label: the kernel is among them.
#[must_use]
pub fn launched(kind: CollectiveKind) -> Vec<RuntimeCall> {
    let kernel = Work { kind: ActivityKind::Kernel, name: kernel(kind), bytes: 0, stream: 0 };
    let mut all: Vec<RuntimeCall> =
        [UNNAMED, EVENT_RECORD, STREAM_WAIT, FUNCTION_BY_SYMBOL].map(|api| call(api, usize::MAX)).into();
    all.push(RuntimeCall { work: Some(kernel), ..call(DRIVER_LAUNCH_EX, usize::MAX) });
    let after = [EVENT_RECORD, STREAM_WAIT, CAPTURING, EVENT_RECORD_WITH_FLAGS, EVENT_RECORD];
    all.extend(after.map(|api| call(api, usize::MAX)));
    all
}

/// Returns the calls of the op that records a collective, before NCCL's own: `beside` if it runs on its own stream.
#[must_use]
pub fn noted(beside: bool) -> Vec<RuntimeCall> {
    let before: &[&'static str] = if beside {
        &[CAPTURING, CAPTURING, EVENT_RECORD_WITH_FLAGS, CAPTURING, STREAM_WAIT]
    } else {
        &[CAPTURING]
    };
    before.iter().map(|&api| call(api, 0)).collect()
}

/// Returns the calls of the op that makes a stream wait for a collective.
#[must_use]
pub fn awaited() -> Vec<RuntimeCall> {
    [CAPTURING, STREAM_WAIT].map(|api| call(api, usize::MAX)).into()
}

/// Returns a call that launches no device work.
pub(super) fn call(api: &'static str, after_children: usize) -> RuntimeCall {
    RuntimeCall { api, after_children, work: None, blocking: Blocking::Never }
}

/// Returns the name of NCCL's kernel, as far as it identifies the operation.
fn kernel(kind: CollectiveKind) -> &'static str {
    match kind {
        CollectiveKind::AllReduce | CollectiveKind::Barrier => "ncclDevKernel_AllReduce",
        CollectiveKind::ReduceScatter => "ncclDevKernel_ReduceScatter",
        CollectiveKind::AllGather => "ncclDevKernel_AllGather",
        CollectiveKind::Broadcast => "ncclDevKernel_Broadcast",
        CollectiveKind::Reduce => "ncclDevKernel_Reduce",
        CollectiveKind::AllToAll
        | CollectiveKind::Gather
        | CollectiveKind::Scatter
        | CollectiveKind::SendReceive
        | CollectiveKind::Other => "ncclDevKernel_SendRecv",
    }
}

/// Returns the memory of a call's inputs and outputs.
pub(super) fn memory(call: &OpCall) -> Vec<NonZeroU64> {
    let of = |arg: &Arg| match arg {
        Arg::Tensor(tensor) => vec![tensor.place],
        Arg::Tensors(tensors) => tensors.iter().map(|tensor| tensor.place).collect(),
        _ => Vec::new(),
    };
    call.inputs.iter().chain(&call.outputs).flat_map(of).filter_map(|place| place.key()).collect()
}
