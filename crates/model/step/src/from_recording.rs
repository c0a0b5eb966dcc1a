//! Conversion of a recording to a step: the ops of a step graph, with their calls from an execution trace.

use std::num::NonZeroU64;

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::{Arg, Device, OpCall};
use steptime_graph::execution::{self, Arg as Recorded, ExecutionGraph, NodeId, StorageId};
use steptime_graph::{self as graph, HostThreadId, StepGraph, TiVec};
use steptime_trace::ActivityKind;

use crate::call::Call;
use crate::ids::{OpId, TensorId};
use crate::step::{Op, Origin, StepIr};
use crate::tensors::{LifetimeEnd, Tensor};

/// Tensors by their ids in the execution trace. One that is copied to the device has a row on either side.
struct Table<'t> {
    trace: Option<&'t ExecutionGraph>,
    rows: TiVec<TensorId, Tensor>,
    known: FxHashMap<(execution::TensorId, Device), TensorId>,
    /// The last tensor at each memory location, by its description: inputs of ops without a node.
    placed: FxHashMap<(Memory, steptime_aten::Tensor), TensorId>,
    /// The nodes of the step's ops.
    nodes: FxHashSet<NodeId>,
}

/// Identity of a piece of memory: the storage of the execution trace, or only an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Memory {
    Storage(StorageId),
    Address(NonZeroU64),
}

impl Memory {
    fn from_tensor(tensor: &steptime_aten::Tensor) -> Option<Memory> {
        let numbered = tensor.place.number().map(|number| Memory::Storage(StorageId(number)));
        numbered.or_else(|| tensor.place.key().map(Memory::Address))
    }
}

impl StepIr {
    /// The step of a graph. `call` returns the call of an op, and `node` its node in the execution trace; tensors of ops without a node are
    /// identified by memory location and description, or have their own identity.
    #[must_use]
    pub fn from_graph(
        graph: &StepGraph,
        trace: Option<&ExecutionGraph>,
        call: impl Fn(graph::OpId) -> Option<OpCall>,
        node: impl Fn(graph::OpId) -> Option<NodeId>,
    ) -> StepIr {
        let mut table = Table {
            trace,
            rows: TiVec::new(),
            known: FxHashMap::default(),
            placed: FxHashMap::default(),
            nodes: graph.ops.keys().filter_map(&node).collect(),
        };
        let threads = vec![Vec::new(); graph.threads.len()].into();
        let kernels = graph.activities.iter().filter(|row| row.kind == ActivityKind::Kernel);
        let streams = kernels.map(|row| row.stream).collect::<FxHashSet<_>>().len();
        let mut step = StepIr { threads, streams, ..StepIr::default() };
        // A derived step has the sequence numbers of its trace. Two recordings have different numbers.
        let numbered = graph.ops.iter().any(|row| row.sequence >= 0);
        let noted = |node: Option<NodeId>| Some(trace?.nodes.noted[node?.index()].sequence);
        for (at, row) in graph.ops.iter_enumerated() {
            let node = node(at);
            let around: Vec<TensorId> = row
                .parent
                .and_then(|parent| step.ops[OpId::from_recorded(parent)].call.as_deref())
                .map_or_else(Vec::new, |call| call.gives().collect());
            let call = call(at).map(|call| table.call(&call, node, &around).into());
            step.ops.push(Op {
                name: graph.op_name(at).to_owned(),
                annotation: row.annotation,
                call,
                thread: row.thread,
                parent: row.parent.map(OpId::from_recorded),
                children: Vec::new(),
                sequence: if numbered { Some(row.sequence) } else { noted(node) }
                    .filter(|&number| number >= 0),
                origin: Origin::Recorded(at),
                node,
                again: None,
                round: 0,
                script: 0.0,
                captured: false,
                ahead: false,
                stream: 0,
                waits: None,
                exchange: None,
            });
        }
        // Ops of a graph are in the order in which they begin, thread by thread.
        for at in graph.ops.keys() {
            let row = &step.ops[OpId::from_recorded(at)];
            let (parent, thread): (Option<OpId>, HostThreadId) = (row.parent, row.thread);
            step.siblings_mut(parent, thread).push(OpId::from_recorded(at));
        }
        step.tensors = table.rows;
        step
    }
}

impl OpId {
    /// The row of an op of the recording: a step begins with these.
    #[must_use]
    pub const fn from_recorded(op: graph::OpId) -> OpId {
        OpId(op.0)
    }
}

/// The op that the function of a node differentiates.
fn forward(trace: &ExecutionGraph, node: NodeId) -> Option<NodeId> {
    trace.tree.ancestors(node).find_map(|node| trace.pairing.forward(node))
}

impl Table<'_> {
    /// Converts a call; `around` are the outputs of the op around it.
    fn call(&mut self, call: &OpCall, node: Option<NodeId>, around: &[TensorId]) -> Call {
        let trace = self.trace.zip(node);
        let recorded = |range: fn(&ExecutionGraph, NodeId) -> execution::ArgRange| {
            trace.map_or(&[][..], |(trace, node)| trace.args.get(range(trace, node)))
        };
        let (inputs, outputs) = (recorded(ExecutionGraph::inputs), recorded(ExecutionGraph::outputs));
        let inputs = self.args(&call.inputs, inputs, trace.map(|(_, node)| node));
        if node.is_none() {
            let taken: Vec<TensorId> = inputs.iter().flat_map(Arg::tensors).copied().collect();
            self.forget(&call.outputs, |row| taken.contains(&row) || around.contains(&row));
        }
        let outputs = self.args(&call.outputs, outputs, None);
        Call { inputs, outputs, settings: call.settings }
    }

    /// Converts arguments; `taken_by` is the node that takes them.
    fn args(&mut self, args: &[Arg], recorded: &[Recorded], taken_by: Option<NodeId>) -> Vec<Arg<TensorId>> {
        let each = args.iter().enumerate();
        each.map(|(at, arg)| {
            let mut ids = self.identities(recorded.get(at)).into_iter();
            arg.map(|tensor| self.row(tensor, ids.next().flatten(), taken_by))
        })
        .collect()
    }

    /// Forgets earlier tensors at the memory locations of outputs, except where `stays` holds: memory is reused.
    fn forget(&mut self, made: &[Arg], stays: impl Fn(TensorId) -> bool) {
        for tensor in made.iter().flat_map(Arg::tensors) {
            if let Some(key) = Memory::from_tensor(tensor).map(|memory| (memory, tensor.clone()))
                && self.placed.get(&key).is_some_and(|&row| !stays(row))
            {
                self.placed.remove(&key);
            }
        }
    }

    /// The tensors of the trace that an argument is or contains.
    fn identities(&self, recorded: Option<&Recorded>) -> Vec<Option<execution::TensorId>> {
        let (Some(trace), Some(recorded)) = (self.trace, recorded) else { return Vec::new() };
        match *recorded {
            Recorded::Tensor(id) => vec![Some(id)],
            Recorded::TensorList(range) => trace.args.tensor_list(range).iter().copied().map(Some).collect(),
            Recorded::List(range) => {
                let items = trace.args.get(range).iter();
                items.map(|item| if let Recorded::Tensor(id) = item { Some(*id) } else { None }).collect()
            }
            _ => Vec::new(),
        }
    }

    fn row(
        &mut self,
        tensor: &steptime_aten::Tensor,
        id: Option<execution::TensorId>,
        taken_by: Option<NodeId>,
    ) -> TensorId {
        let place = Memory::from_tensor(tensor).map(|memory| (memory, tensor.clone()));
        let alike = place.as_ref().and_then(|place| self.placed.get(place)).copied();
        let alike = alike.or_else(|| self.saved(tensor, taken_by?));
        let row = match id {
            Some(id) => self.recorded(tensor, id, alike, taken_by),
            None => alike.unwrap_or_else(|| self.fresh(tensor, None)),
        };
        self.placed.extend(place.map(|place| (place, row)));
        row
    }

    /// The row of a tensor of the trace. A tensor that no op of the step makes is identified with the last one at its memory location, if the
    /// descriptions are equal: the output of an op without a node, such as a copy of a batch to the device, or a result saved by autograd, which is
    /// another object over the same memory.
    fn recorded(
        &mut self,
        tensor: &steptime_aten::Tensor,
        id: execution::TensorId,
        alike: Option<TensorId>,
        taken_by: Option<NodeId>,
    ) -> TensorId {
        if let Some(&row) = self.known.get(&(id, tensor.device)) {
            return row;
        }
        let of = self.trace.map(|trace| trace.tensors.get(id));
        let made = of.and_then(|of| of.producer).is_some_and(|node| self.nodes.contains(&node));
        let storage = of.map(|of| of.storage);
        let fake = self.trace.is_some_and(|trace| trace.fake);
        let is_same = |row: &TensorId| {
            let row = &self.rows[*row];
            row.recorded.is_none() || row.storage == storage || fake
        };
        // Reused memory has equal descriptions, too: autograd saves arguments and results of the forward op.
        let is_saved = |row: TensorId| {
            self.rows[row].recorded.is_none() || taken_by.is_some_and(|node| self.is_of_forward(row, node))
        };
        let row = match alike.filter(|row| !made && is_same(row) && is_saved(*row)) {
            Some(row) => {
                let known = &mut self.rows[row];
                if known.recorded.is_none() {
                    (known.recorded, known.storage) = (Some(id), storage);
                }
                row
            }
            None => self.fresh(tensor, Some(id)),
        };
        self.known.insert((id, tensor.device), row);
        row
    }

    /// Whether a tensor is an input or output of the op that the function of a node differentiates.
    fn is_of_forward(&self, row: TensorId, node: NodeId) -> bool {
        let forward = self.trace.and_then(|trace| Some((trace, forward(trace, node)?)));
        forward.is_some_and(|(trace, op)| {
            let device = self.rows[row].value.device;
            let mut taken = trace.input_tensors(op).chain(trace.output_tensors(op));
            taken.any(|(_, id)| self.known.get(&(id, device)) == Some(&row))
        })
    }

    /// For tensors without memory, the result of the differentiated op that autograd saved: the first with an equal description.
    fn saved(&self, tensor: &steptime_aten::Tensor, node: NodeId) -> Option<TensorId> {
        let trace = self.trace.filter(|trace| trace.fake)?;
        let results = trace.output_tensors(forward(trace, node)?);
        let rows = results.filter_map(|(_, id)| self.known.get(&(id, tensor.device)).copied());
        rows.into_iter().find(|&row| self.rows[row].value == *tensor)
    }

    fn fresh(&mut self, tensor: &steptime_aten::Tensor, id: Option<execution::TensorId>) -> TensorId {
        let recorded = self.trace.zip(id).map(|(trace, id)| trace.tensors.get(id).storage);
        let storage = recorded.or_else(|| tensor.place.number().map(StorageId));
        // A derived op makes its tensors itself.
        let made = storage.is_none_or(|storage| self.is_made(storage));
        self.rows.push_and_get_key(Tensor {
            value: tensor.clone(),
            storage,
            recorded: id,
            made,
            until: LifetimeEnd::LastUse,
        })
    }

    /// Whether a storage was made within the step: the trace has its producer, or does not have the storage.
    fn is_made(&self, storage: StorageId) -> bool {
        let storages = self.trace.map_or(&[][..], |trace| trace.tensors.storages());
        storages.get(storage.0 as usize).is_none_or(|storage| storage.producer.is_some())
    }
}
