//! Lifetimes of tensors.
//!
//! Ids in an execution trace are derived from addresses, and an address is reused once it is free. Nodes are
//! replayed in the order in which they began and ended: a node's inputs are the tensors last made at these addresses; an output
//! begins a new life unless it is an input, was made inside the node, or is a view by the schema.

use super::addresses::Addresses;
use super::args::{Arg, ArgRange};
use super::fsdp_parameters;
use super::ids::{NodeId, StorageId, TensorId};
use super::operands::Operands;
use super::pairing::Pairing;
use super::schema::{self, Access, Schemas};
use super::tensor::{Storage, Tensor};
use super::tree::Tree;
use super::without_memory;
use rustc_hash::FxHashMap;
use steptime_trace::{Bytes, ExecutionTrace, NameId, Value};

/// Element type of an undefined tensor.
const UNDEFINED: &str = "nullptr (uninitialized)";
/// Maximum nesting depth of lists; deeper lists are dropped (no operator takes them).
const DEEPEST_LIST: usize = 16;

/// Distinguishes the tensors of a trace, by replaying it.
pub(super) fn resolve(trace: &ExecutionTrace, tree: &Tree, schemas: &Schemas, pairing: &Pairing) -> Operands {
    let mut replay = Replay {
        trace,
        tree,
        pairing,
        unpacked: FxHashMap::default(),
        made_unseen: FxHashMap::default(),
        fake: without_memory::is_fake(trace),
        found: Operands::default(),
        now: Addresses::default(),
        undefined: trace.names.find(UNDEFINED),
    };
    replay.found.outputs = vec![ArgRange::default(); tree.len()];
    let mut uses = Vec::new();
    for row in 0..tree.len() {
        let node = NodeId::at(row);
        replay.gathered(node);
        let inputs = replay.node(node, trace.inputs(row), |_| None);
        replay.found.inputs.push(inputs);
        let mut taken: Vec<_> = replay.found.args.tensors(inputs).map(|(_, tensor)| (tensor, node)).collect();
        taken.sort_unstable();
        taken.dedup();
        uses.append(&mut taken);
        for ended in tree.ending(node) {
            let schema = schemas.get(trace.nodes.op_schema[ended.index()]);
            let unsaid = replay.fake && schema::is_view_unsaid(trace.name(trace.nodes.name[ended.index()]));
            let access = |position| match schema.map_or(Access::Plain, |schema| schema.output(position)) {
                Access::Plain if unsaid => Access::View,
                access => access,
            };
            replay.mark_inputs(ended);
            let outputs = replay.node(ended, trace.outputs(ended.index()), |position| Some(access(position)));
            replay.found.outputs[ended.index()] = outputs;
        }
    }
    replay.found.tensors.set_consumers(&uses);
    replay.found
}

struct Replay<'a> {
    trace: &'a ExecutionTrace,
    tree: &'a Tree,
    pairing: &'a Pairing,
    /// Results of its forward operator that each backward function has taken so far.
    unpacked: FxHashMap<NodeId, Vec<TensorId>>,
    /// Memory whose allocation is not visible in any operator, and the node that allocates it: tensors in it that are first seen inside the node are
    /// its outputs.
    made_unseen: FxHashMap<StorageId, NodeId>,
    /// Whether storage ids carry no information: then each tensor has its own storage, except for views by the schema.
    fake: bool,
    found: Operands,
    now: Addresses,
    undefined: Option<NameId>,
}

impl Replay<'_> {
    /// Adds memory that FSDP allocates at an address that it used before.
    fn gathered(&mut self, node: NodeId) {
        for raw in fsdp_parameters::parameters(self.trace, self.tree, node) {
            if raw.storage_id != 0 && !self.fake {
                let storage = self.new_storage(node, raw, Some(node));
                self.now.set_storage(raw.storage_id, storage);
                self.made_unseen.insert(storage, node);
            }
        }
    }

    fn mark_inputs(&mut self, node: NodeId) {
        for (_, tensor) in self.found.input_tensors(node) {
            self.now.set_input(tensor, self.found.tensors.get(tensor).storage, node);
        }
    }

    /// Resolves a node's inputs (`access` returns `None`) or outputs.
    fn node(&mut self, node: NodeId, values: &[Value], access: impl Fn(usize) -> Option<Access>) -> ArgRange {
        let resolved = values.iter().enumerate();
        let args: Vec<Arg> = resolved.map(|(at, &value)| self.value(node, value, access(at), 0)).collect();
        self.found.args.push(&args)
    }

    fn value(&mut self, node: NodeId, value: Value, output: Option<Access>, depth: usize) -> Arg {
        match value {
            Value::Tensor(index) => match self.trace.values.tensor(index) {
                raw if raw.tensor_id == 0 || Some(raw.dtype) == self.undefined => Arg::None,
                raw => Arg::Tensor(self.tensor(node, raw, output)),
            },
            Value::List(_) if depth == DEEPEST_LIST => Arg::Unknown,
            Value::List(range) => {
                let items = self.trace.list(range).iter();
                let items: Vec<Arg> = items.map(|&item| self.value(node, item, output, depth + 1)).collect();
                self.found.args.push_list(&items)
            }
            other => Arg::plain(other),
        }
    }

    fn tensor(&mut self, node: NodeId, raw: &steptime_trace::Tensor, output: Option<Access>) -> TensorId {
        let current = self.now.tensor(raw.tensor_id, self.device(raw)).filter(|&current| {
            let lives_on = output.is_none()
                || self.now.is_input(current, node)
                || self.tree.encloses(node, self.found.tensors.get(current).seen);
            lives_on && self.is_same(current, raw)
        });
        let saved = if self.fake && output.is_none() { self.saved(node, raw, current) } else { None };
        let current = current.filter(|_| saved.is_none());
        let producer = output.map(|_| node);
        // Memory without an address belongs to a single tensor.
        let addressed = raw.storage_id != 0 && raw.numel != 0 && !self.fake;
        let (storage, is_view) = if addressed {
            self.storage(node, raw, output)
        } else if let Some(current) = current {
            if self.fake && output == Some(Access::Plain) && !self.now.is_input(current, node) {
                self.found.tensors.claim(current, node);
            }
            return current;
        } else if let Some(shared) = self.viewed(node, output).or(saved) {
            (shared, true)
        } else {
            (self.new_storage(node, raw, producer), false)
        };
        match current {
            Some(current) if self.found.tensors.get(current).storage == storage => {
                if output == Some(Access::Plain) && !self.now.is_input(current, node) {
                    self.found.tensors.claim(current, node);
                }
                current
            }
            _ => {
                let unseen = || self.made_unseen.get(&storage).copied();
                let producer = producer.or_else(|| unseen().filter(|&made| self.tree.encloses(made, node)));
                self.new_tensor(raw, Life { storage, is_view, producer, node })
            }
        }
    }

    /// Returns the storage that an output shares with the first tensor of its node, if only the schema shows that.
    fn viewed(&self, node: NodeId, output: Option<Access>) -> Option<StorageId> {
        if !self.fake || output.is_none_or(|access| access == Access::Plain) {
            return None;
        }
        let first = self.found.input_tensors(node).next()?;
        Some(self.found.tensors.get(first.1).storage)
    }

    /// Returns the storage of an operator's result that its backward function takes: autograd gives a saved result a new
    /// id, which a freed tensor may have had. Of several equal-looking results, each is taken once.
    fn saved(
        &mut self,
        node: NodeId,
        raw: &steptime_trace::Tensor,
        current: Option<TensorId>,
    ) -> Option<StorageId> {
        let forward_of = |around: NodeId| Some((around, self.pairing.forward(around)?));
        let (function, forward) = self.tree.ancestors(node).skip(1).find_map(forward_of)?;
        let is_known = |tensor: TensorId| {
            let mut taken = self.found.input_tensors(forward).chain(self.found.input_tensors(function));
            taken.any(|(_, other)| other == tensor)
                || self.tree.encloses(function, self.found.tensors.get(tensor).seen)
        };
        if current.is_some_and(is_known) {
            return None;
        }
        let taken = self.unpacked.get(&function).map_or(&[][..], Vec::as_slice);
        let given = self.found.output_tensors(forward).map(|(_, tensor)| tensor);
        let mut alike = given.filter(|&tensor| self.is_same(tensor, raw) && !taken.contains(&tensor));
        let tensor = alike.next()?;
        self.unpacked.entry(function).or_default().push(tensor);
        Some(self.found.tensors.get(tensor).storage)
    }

    /// Returns the storage of a tensor, and whether it existed before.
    fn storage(
        &mut self,
        node: NodeId,
        raw: &steptime_trace::Tensor,
        output: Option<Access>,
    ) -> (StorageId, bool) {
        let fresh = output == Some(Access::Plain);
        let current = self.now.storage(raw.storage_id).filter(|&current| {
            let storage = self.found.tensors.storage(current);
            let lives_on = !fresh
                || self.now.is_storage_of_input(current, node)
                || self.tree.encloses(node, storage.seen);
            lives_on && storage.device == raw.device
        });
        if let Some(current) = current {
            if fresh && !self.now.is_storage_of_input(current, node) {
                self.found.tensors.claim_storage(current, node);
            }
            return (current, true);
        }
        let storage = self.new_storage(node, raw, output.map(|_| node));
        self.now.set_storage(raw.storage_id, storage);
        (storage, false)
    }

    fn new_storage(
        &mut self,
        node: NodeId,
        raw: &steptime_trace::Tensor,
        producer: Option<NodeId>,
    ) -> StorageId {
        let address = if self.fake && raw.storage_id != 0 { raw.tensor_id } else { raw.storage_id };
        let storage = Storage { device: raw.device, address, bytes: Bytes(0), producer, seen: node };
        self.found.tensors.add_storage(storage)
    }

    fn new_tensor(&mut self, raw: &steptime_trace::Tensor, life: Life) -> TensorId {
        let tensors = &mut self.found.tensors;
        let shape = tensors.add_dims(self.trace.shape(raw));
        let strides = self.trace.strides(raw).map(|strides| tensors.add_dims(strides));
        let tensor = tensors.add(Tensor {
            raw_id: raw.tensor_id,
            shape,
            strides,
            dtype: raw.dtype,
            device: raw.device,
            storage: life.storage,
            offset: raw.offset,
            itemsize: raw.itemsize,
            numel: raw.numel,
            producer: life.producer,
            seen: life.node,
            is_view: life.is_view,
        });
        self.now.set_tensor(raw.tensor_id, self.device(raw), tensor);
        tensor
    }

    /// Returns the device that distinguishes tensors of one id: a fake tensor is on `meta` while its shape is computed, and on its own device
    /// otherwise.
    fn device(&self, raw: &steptime_trace::Tensor) -> Option<NameId> {
        self.fake.then_some(raw.device)
    }

    /// Whether a tensor has the same shape, strides, type, offset and device as before.
    fn is_same(&self, tensor: TensorId, raw: &steptime_trace::Tensor) -> bool {
        let known = self.found.tensors.get(tensor);
        let facts = |numel, offset, itemsize, dtype, device| (numel, offset, itemsize, dtype, device);
        facts(known.numel, known.offset, known.itemsize, known.dtype, known.device)
            == facts(raw.numel, raw.offset, raw.itemsize, raw.dtype, raw.device)
            && self.found.tensors.shape(tensor) == self.trace.shape(raw)
            && self.found.tensors.strides(tensor) == self.trace.strides(raw)
    }
}

/// Origin of a new tensor.
struct Life {
    storage: StorageId,
    is_view: bool,
    producer: Option<NodeId>,
    node: NodeId,
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Node, graph};
    use super::super::{NodeId, TensorId};

    #[test]
    fn a_reused_address_is_another_tensor() {
        let graph = graph(&[
            Node::op(3, 2, "aten::empty() -> Tensor").outputs("f 10 11 4"),
            Node::op(4, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 10 11 4").outputs("f 12 13 4"),
            Node::op(5, 2, "aten::empty() -> Tensor").outputs("f 10 11 4"),
            Node::op(6, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 10 11 4").outputs("f 14 15 4"),
        ]);
        let input = |node| graph.input_tensors(NodeId(node)).next().unwrap().1;
        assert_ne!(input(3), input(5));
        assert_eq!(graph.tensors.get(input(3)).producer, Some(NodeId(2)));
        assert_eq!(graph.tensors.get(input(5)).producer, Some(NodeId(4)));
        assert_eq!(graph.tensors.consumers(input(5)), [NodeId(5)]);
        assert_eq!((graph.tensors.len(), graph.tensors.storages().len()), (4, 4));
    }

    #[test]
    fn views_and_in_place_results_keep_the_storage() {
        let graph = graph(&[
            Node::op(3, 2, "aten::view(Tensor(a) self) -> Tensor(a)")
                .inputs("f 10 11 4")
                .outputs("f 12 11 2,2"),
            Node::op(4, 2, "aten::add_(Tensor(a!) self) -> Tensor(a!)")
                .inputs("f 12 11 2,2")
                .outputs("f 12 11 2,2"),
            Node::op(5, 2, "aten::_unsafe_view(Tensor self) -> Tensor")
                .inputs("f 12 11 2,2")
                .outputs("f 14 11 4"),
            Node::op(6, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 10 11 4").outputs("f 16 17 4"),
        ]);
        assert_eq!(graph.tensors.storages().len(), 2);
        let shapes: Vec<_> =
            (0..graph.tensors.len() as u32).map(|at| graph.tensors.shape(TensorId(at))).collect();
        assert_eq!(shapes, [&[4][..], &[2, 2], &[4], &[4]]);
        let views: Vec<_> = graph.tensors.all().iter().map(|tensor| tensor.is_view).collect();
        assert_eq!(views, [false, true, true, false]);
        assert_eq!(graph.tensors.storages()[0].producer, None);
        assert_eq!(graph.tensors.storages()[0].bytes.0, 16);
    }

    #[test]
    fn what_an_inner_operator_made_is_what_the_outer_returns() {
        let graph = graph(&[
            Node::op(3, 2, "aten::ones() -> Tensor").outputs("f 10 11 4"),
            Node::op(4, 3, "aten::empty() -> Tensor").outputs("f 10 11 4"),
            Node::op(5, 3, "aten::fill_(Tensor(a!) self) -> Tensor(a!)")
                .inputs("f 10 11 4")
                .outputs("f 10 11 4"),
        ]);
        assert_eq!(graph.tensors.len(), 1);
        assert_eq!(graph.tensors.get(TensorId(0)).producer, Some(NodeId(3)));
        assert_eq!(graph.nodes.top_level[3], Some(NodeId(2)));
    }

    #[test]
    fn what_appears_inside_an_operator_that_returns_it_was_made_there() {
        let graph = graph(&[
            Node::op(3, 2, "aten::sum(Tensor x) -> Tensor").inputs("f 8 9 4").outputs("f 10 11 4"),
            Node::op(4, 3, "aten::zero_(Tensor(a!) x) -> Tensor(a!)")
                .inputs("f 10 11 4")
                .outputs("f 10 11 4"),
        ]);
        assert_eq!(graph.tensors.get(TensorId(1)).producer, Some(NodeId(2)));
        assert_eq!(graph.tensors.storages()[1].producer, Some(NodeId(2)));
        assert_eq!(graph.tensors.storages()[0].producer, None);
    }

    #[test]
    fn without_memory_a_view_that_the_schema_does_not_tell_shares_the_storage() {
        let graph = graph(&[
            Node::op(3, 2, "aten::mm(Tensor x, Tensor y) -> Tensor")
                .inputs("f 10 9 2,2; f 11 9 2,2")
                .outputs("f 12 9 2,2"),
            Node::op(4, 2, "aten::_unsafe_view(Tensor self) -> Tensor")
                .inputs("f 12 9 2,2")
                .outputs("f 13 9 4"),
            Node::op(5, 2, "aten::_unsafe_index(Tensor self) -> Tensor")
                .inputs("f 13 9 4")
                .outputs("f 14 9 3"),
            Node::op(6, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 14 9 3").outputs("f 15 9 3"),
        ]);
        let storage = |node| graph.tensors.get(graph.output_tensors(NodeId(node)).next().unwrap().1).storage;
        assert_eq!(storage(2), storage(3));
        assert_ne!(storage(3), storage(4));
    }

    #[test]
    fn empty_tensors_share_nothing() {
        let graph = graph(&[
            Node::op(3, 2, "aten::empty() -> Tensor").outputs("f 10 99 0"),
            Node::op(4, 2, "aten::empty() -> Tensor").outputs("f 12 99 0"),
            Node::op(5, 2, "aten::resize_(Tensor(a!) self) -> Tensor(a!)")
                .inputs("f 10 99 0")
                .outputs("f 10 13 4"),
        ]);
        assert_eq!((graph.tensors.len(), graph.tensors.storages().len()), (3, 3));
    }
}
