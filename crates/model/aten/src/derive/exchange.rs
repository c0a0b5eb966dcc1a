//! What a step does together with other ranks: which calls an exchange makes, on which stream it runs, and what waits for it.

use std::num::NonZeroU64;

use steptime_graph::execution::{ExecutionGraph, NodeId};
use steptime_graph::names::CollectiveKind;
use steptime_graph::names::cuda::{
    CAPTURING, DRIVER_LAUNCH_EX, EVENT_RECORD, EVENT_RECORD_WITH_FLAGS, FUNCTION_BY_SYMBOL, STREAM_WAIT,
    UNNAMED,
};
use steptime_graph::{ActivityId, Blocking, Collective, StepGraph, StreamDependency, StreamId};
use steptime_trace::ActivityKind;

use super::calls::{RuntimeCall, Work};
use super::tree::{OpTree, TreeNode};
use crate::call::{Arg, OpCall};
use crate::from_execution;

/// The op that notes what ranks do together.
const NOTE: &str = "record_param_comms";
/// What the ops that PyTorch's process groups offer begin with.
const PROCESS_GROUP: &str = "c10d::";

/// A node that waits for other ranks, or sends them something.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// What is done, with whom.
    pub collective: Collective,
    /// Whether it runs on a stream of its own, beside what is launched after it.
    pub beside: bool,
    /// Which memory it works on.
    pub memory: Vec<NonZeroU64>,
}

impl Exchange {
    /// That of a node of an execution trace; `None` where the node is none.
    pub(super) fn of(graph: &ExecutionGraph, node: NodeId) -> Option<Exchange> {
        let collective = graph.collectives.get(&node)?.clone();
        let asked = graph.tree.parent(node).filter(|&op| graph.node_name(op).starts_with(PROCESS_GROUP));
        let call = asked.map(|op| from_execution::op_call(graph, op));
        // Where it is not said, as by PyTorch before 2.1, all ran on streams of their own.
        let beside = call.as_ref().is_none_or(|call| {
            call.inputs.iter().rev().find_map(|arg| match arg {
                Arg::Bool(later) => Some(*later),
                _ => None,
            }) != Some(false)
        });
        let mut memory = memory(&from_execution::op_call(graph, node));
        memory.extend(call.iter().flat_map(self::memory));
        Some(Exchange { collective, beside, memory })
    }

    /// The calls of the runtime that NCCL makes for it, inside the label that it sets.
    fn launch(&self) -> Vec<RuntimeCall> {
        let kernel =
            Work { kind: ActivityKind::Kernel, name: kernel(self.collective.kind), bytes: 0, stream: 0 };
        let mut all: Vec<RuntimeCall> =
            [UNNAMED, EVENT_RECORD, STREAM_WAIT, FUNCTION_BY_SYMBOL].map(|api| call(api, usize::MAX)).into();
        all.push(RuntimeCall { work: Some(kernel), ..call(DRIVER_LAUNCH_EX, usize::MAX) });
        let after = [EVENT_RECORD, STREAM_WAIT, CAPTURING, EVENT_RECORD_WITH_FLAGS, EVENT_RECORD];
        all.extend(after.map(|api| call(api, usize::MAX)));
        all
    }
}

fn call(api: &'static str, after_children: usize) -> RuntimeCall {
    RuntimeCall { api, after_children, work: None, blocking: Blocking::Never }
}

/// The calls of a node that notes what is exchanged, before those of its label; those of the label; or of one that waits for an
/// exchange. None of other nodes.
pub(super) fn calls(tree: &OpTree, at: usize, children: &[Vec<u32>]) -> Option<Vec<RuntimeCall>> {
    let node = &tree.nodes[at];
    if let Some(exchange) = &node.exchange {
        let before: &[&'static str] = if exchange.beside {
            &[CAPTURING, CAPTURING, EVENT_RECORD_WITH_FLAGS, CAPTURING, STREAM_WAIT]
        } else {
            &[CAPTURING]
        };
        let before = before.iter().map(|&api| call(api, 0));
        let own = if children[at].is_empty() { exchange.launch() } else { Vec::new() };
        return Some(before.chain(own).collect());
    }
    if let Some(exchange) = around(tree, at) {
        return Some(exchange.launch());
    }
    is_note(node).then(|| [CAPTURING, STREAM_WAIT].map(|api| call(api, usize::MAX)).into())
}

/// The exchange that a label is set around the launch of.
pub(super) fn around(tree: &OpTree, at: usize) -> Option<&Exchange> {
    tree.nodes[tree.nodes[at].parent? as usize].exchange.as_deref()
}

/// The exchange that is launched at a node: its own, or that which it is the label of.
pub(super) fn launched(tree: &OpTree, at: usize) -> Option<&Exchange> {
    tree.nodes[at].exchange.as_deref().or_else(|| around(tree, at))
}

/// Whether a node notes what ranks do together, and launches nothing that its arguments tell of.
pub(super) fn is_note(node: &TreeNode) -> bool {
    node.call.name == NOTE
}

/// NCCL's kernel, as far as its name says what it does.
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

/// Which memory a call takes and gives.
fn memory(call: &OpCall) -> Vec<NonZeroU64> {
    let of = |arg: &Arg| match arg {
        Arg::Tensor(tensor) => vec![tensor.place],
        Arg::Tensors(tensors) => tensors.iter().map(|tensor| tensor.place).collect(),
        _ => Vec::new(),
    };
    call.inputs.iter().chain(&call.outputs).flat_map(of).filter_map(|place| place.key()).collect()
}

/// Lets each exchange that runs beside others wait for what was launched before it, and what takes its memory for it: the script
/// waits for an exchange before it uses what came.
pub(super) fn wait(graph: &mut StepGraph, tree: &OpTree, node_of: impl Fn(steptime_graph::OpId) -> usize) {
    if graph.collectives.is_empty() {
        return;
    }
    let mut under_way: Vec<(ActivityId, &Exchange)> = Vec::new();
    let mut last: Option<ActivityId> = None;
    let mut waits = Vec::new();
    for call in graph.calls_by_hand_off() {
        let row = &graph.calls[call];
        let Some(at) = row.op.map(&node_of) else { continue };
        let node = &tree.nodes[at];
        for to in row.activities() {
            let wait = |from| StreamDependency { from, to, inferred: true, wraps: false };
            let exchange = graph.activities[to].collective.and(launched(tree, at));
            if let Some(exchange) = exchange.filter(|exchange| exchange.beside) {
                waits.extend(last.map(wait));
                under_way.push((to, exchange));
                continue;
            }
            if !under_way.is_empty() {
                let own = memory(&node.call);
                let (over, left) = under_way
                    .into_iter()
                    .partition(|(_, exchange)| exchange.memory.iter().any(|at| own.contains(at)));
                under_way = left;
                let over: Vec<(ActivityId, &Exchange)> = over;
                waits.extend(over.into_iter().map(|(from, _)| wait(from)));
            }
            if graph.activities[to].stream == StreamId(0) {
                last = Some(to);
            }
        }
    }
    graph.waits.extend(waits);
    graph.waits.sort_by_key(|wait| wait.to);
}
