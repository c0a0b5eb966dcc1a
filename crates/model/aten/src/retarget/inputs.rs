//! Copies of the batch to the device, and the ops that create the batch in host memory.

use std::collections::{BTreeMap, BTreeSet};

use steptime_graph::execution::{ExecutionGraph, NodeId, TensorId};
use steptime_graph::names::EventName;
use steptime_trace::{ConstantTensor, Meta};

use super::branch::Branch;
use super::{build, is_engine, is_optimizer_step};
use crate::call::{Arg, Device, Tensor};
use crate::derive::{OpTree, TreeKind};
use crate::from_execution;
use crate::weight::is_weight;

/// Positions of the device and of the non-blocking flag in the arguments of `aten::to`.
const TO_DEVICE: usize = 3;
const TO_NON_BLOCKING: usize = 5;

/// Tensors to copy to the device, and the nodes around them.
#[derive(Debug, Default)]
pub(super) struct InputCopies {
    /// Moves by the script itself, which did nothing on the CPU.
    pub nodes: BTreeSet<NodeId>,
    /// Tensors that they move.
    pub tensors: BTreeSet<TensorId>,
    /// Nodes that create the batch: they work on host memory even if there is a GPU.
    pub host: BTreeSet<NodeId>,
    /// Tensors to copy if the script moves nothing, in order of use. The forward pass reads them, and
    /// nothing in the step creates or updates them, except a loader.
    pub unmoved: Vec<Tensor>,
    /// Number of inputs that are the same in each step: they are on the device.
    pub kept: usize,
}

/// Finds the tensors to copy: those that the script moves to its device with `to`; otherwise those that look like a batch.
pub(super) fn find(trace: &ExecutionGraph, tree: &OpTree, meta: &Meta) -> InputCopies {
    let loading = inside(tree, is_loader);
    let mut search = Search::new(trace, persistent_storages(trace, tree));
    let mut copied = InputCopies::default();
    for (at, node) in tree.nodes.iter().enumerate() {
        let Some(origin) = node.origin else { continue };
        if loading[at] {
            copied.host.insert(origin);
            search.loaded.extend(trace.output_tensors(origin).map(|(_, tensor)| tensor));
        } else if let Some(tensor) = moved(trace, tree, at) {
            if !search.is_on_device(tensor) {
                copied.nodes.insert(origin);
                copied.tensors.insert(tensor);
                search.makers_of(tensor, &mut copied.host);
            }
            search.device.extend(trace.output_tensors(origin).map(|(_, tensor)| tensor));
        } else {
            search.pass(origin);
        }
    }
    // Nodes inside others work on the same memory as those around them.
    for node in &tree.nodes {
        let around = node.parent.and_then(|parent| tree.nodes[parent as usize].origin);
        if let (Some(origin), Some(around)) = (node.origin, around)
            && copied.host.contains(&around)
        {
            copied.host.insert(origin);
        }
    }
    if copied.nodes.is_empty() {
        (copied.unmoved, copied.kept) = unmoved(trace, tree, &search, &copied.host, meta);
    }
    copied
}

/// Tensors that are known to be on the device from the ops so far.
struct Search<'t> {
    trace: &'t ExecutionGraph,
    /// Storages of parameters and of other tensors that the step updates.
    kept: BTreeSet<u32>,
    /// Tensors that were moved to the device, or computed from such tensors.
    device: BTreeSet<TensorId>,
    /// Tensors that a loader made.
    loaded: BTreeSet<TensorId>,
    /// Op that made each tensor for which neither is known yet.
    makers: BTreeMap<TensorId, NodeId>,
}

impl<'t> Search<'t> {
    fn new(trace: &'t ExecutionGraph, kept: BTreeSet<u32>) -> Search<'t> {
        Search { trace, kept, device: BTreeSet::new(), loaded: BTreeSet::new(), makers: BTreeMap::new() }
    }

    fn is_on_device(&self, tensor: TensorId) -> bool {
        self.device.contains(&tensor) || self.kept.contains(&storage(self.trace, tensor))
    }

    /// Processes an op: its results are on the device if one of its arguments is.
    fn pass(&mut self, node: NodeId) {
        let on_device = self.trace.input_tensors(node).any(|(_, tensor)| self.is_on_device(tensor));
        for (_, tensor) in self.trace.output_tensors(node) {
            if on_device {
                self.device.insert(tensor);
            } else {
                self.makers.entry(tensor).or_insert(node);
            }
        }
    }

    /// Adds the ops that made a tensor in host memory.
    fn makers_of(&mut self, tensor: TensorId, host: &mut BTreeSet<NodeId>) {
        let mut all = vec![tensor];
        while let Some(tensor) = all.pop() {
            if let Some(maker) = self.makers.remove(&tensor) {
                host.insert(maker);
                all.extend(self.trace.input_tensors(maker).map(|(_, tensor)| tensor));
            }
        }
    }
}

/// Returns the tensor that the script moves to its device with this node, if it does.
fn moved(trace: &ExecutionGraph, tree: &OpTree, at: usize) -> Option<TensorId> {
    let node = &tree.nodes[at];
    let outermost = node.parent.is_none_or(|p| tree.nodes[p as usize].kind == TreeKind::Annotation);
    let leaf = tree.nodes.get(at + 1).is_none_or(|next| next.parent != Some(at as u32));
    let device = match node.call.inputs.get(TO_DEVICE) {
        Some(Arg::Text(device)) => device.as_str(),
        _ => "",
    };
    let moves = if trace.fake { !device.is_empty() } else { device == "cpu" && leaf };
    let origin = node.origin.filter(|_| node.call.name == "aten::to" && outermost && moves)?;
    trace.input_tensors(origin).next().map(|(_, tensor)| tensor)
}

/// Returns the storages that the step keeps: those that an optimizer works on, and a norm's running statistics.
fn persistent_storages(trace: &ExecutionGraph, tree: &OpTree) -> BTreeSet<u32> {
    let mut kept = BTreeSet::new();
    for (node, inside) in tree.nodes.iter().zip(optimizing(tree)) {
        let Some(origin) = node.origin else { continue };
        if inside || node.call.name.contains("batch_norm") {
            let tensors = trace.input_tensors(origin).skip(usize::from(!inside));
            kept.extend(
                tensors
                    .filter(|(_, t)| trace.tensors.get(*t).producer.is_none())
                    .map(|(_, t)| storage(trace, t)),
            );
        }
    }
    kept
}

/// Tensor that is older than the step or comes from a loader, and that the forward pass reads for more than indexing.
struct ReadTensor {
    id: TensorId,
    /// Whether the step keeps it: updates it, or uses it as a weight.
    kept: bool,
}

/// Returns the tensors of the batch, as far as the trace shows them, and the number of inputs that stay the same. The batch
/// consists of the tensors that the forward pass reads, that the step does not keep, and that no module contains.
fn unmoved(
    trace: &ExecutionGraph,
    tree: &OpTree,
    search: &Search<'_>,
    host: &BTreeSet<NodeId>,
    meta: &Meta,
) -> (Vec<Tensor>, usize) {
    // If gradients of several batches are accumulated, forward passes come between backward passes.
    let backward = inside(tree, is_engine);
    let end = backward.iter().rposition(|&inside| inside).unwrap_or(tree.nodes.len());
    // Without either, parameters cannot be distinguished from the batch.
    if meta.constants.is_empty() && !tree.nodes.iter().any(|node| is_optimizer_step(&node.call.name)) {
        return (Vec::new(), 0);
    }
    let mut read: Vec<ReadTensor> = Vec::new();
    let mut places: BTreeMap<TensorId, usize> = BTreeMap::new();
    let forward = tree.nodes[..end].iter().zip(&backward).filter(|(_, backward)| !**backward);
    for (node, _) in forward.filter(|(node, _)| node.call.name != "aten::index") {
        let outermost = node.parent.is_none_or(|p| tree.nodes[p as usize].kind == TreeKind::Annotation);
        let origin = node.origin.filter(|origin| outermost && !host.contains(origin));
        for (at, id) in origin.into_iter().flat_map(|origin| trace.input_tensors(origin)) {
            let row = trace.tensors.get(id);
            let whole = row.numel > 0 && !trace.tensors.shape(id).is_empty();
            let old = row.producer.is_none() || search.loaded.contains(&id);
            if !(old && whole) {
                continue;
            }
            let kept = is_weight(&node.call.name, at);
            let place = *places.entry(id).or_insert_with(|| {
                read.push(ReadTensor { id, kept: search.kept.contains(&storage(trace, id)) });
                read.len() - 1
            });
            read[place].kept |= kept;
        }
    }
    without(trace, &read, meta)
}

/// Returns the tensors that are neither kept nor match a constant or a kept input; each constant or input matches one tensor. Unread constants
/// may look like the batch: they do not leave the step without one.
fn without(trace: &ExecutionGraph, read: &[ReadTensor], meta: &Meta) -> (Vec<Tensor>, usize) {
    let (mut constants, mut inputs) =
        (TensorCounts::new(&meta.constants), TensorCounts::new(&meta.kept_inputs));
    let described = |read: &&ReadTensor| from_execution::tensor(trace, read.id);
    for tensor in read.iter().filter(|read| read.kept).filter_map(|read| described(&read)) {
        constants.take(&tensor);
    }
    let read = read.iter().filter(|read| !read.kept).filter_map(|read| described(&read));
    let (kept, others): (Vec<Tensor>, Vec<Tensor>) = read.partition(|tensor| inputs.take(tensor));
    // If a batch looks like a constant, the first one in use is the batch.
    let mut batch: Vec<Tensor> =
        others.iter().rev().filter(|tensor| !constants.take(tensor)).cloned().collect();
    batch.reverse();
    if batch.is_empty() && kept.is_empty() {
        batch.extend(others.into_iter().next());
    }
    (batch, kept.len())
}

/// Numbers of tensors by shape and element size.
struct TensorCounts(BTreeMap<ConstantTensor, usize>);

impl TensorCounts {
    fn new(tensors: &[ConstantTensor]) -> TensorCounts {
        let mut left: BTreeMap<ConstantTensor, usize> = BTreeMap::new();
        for tensor in tensors {
            *left.entry(tensor.clone()).or_default() += 1;
        }
        TensorCounts(left)
    }

    /// Removes one that matches a tensor, if there is one.
    fn take(&mut self, tensor: &Tensor) -> bool {
        let alike = ConstantTensor { shape: tensor.shape.to_vec(), size: tensor.dtype.size() };
        let count = self.0.get_mut(&alike).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    }
}

/// Returns for each node whether it is in an optimizer's own part of its step. That part begins after the last node of the
/// backward engine, which a closure runs.
pub(super) fn optimizing(tree: &OpTree) -> Vec<bool> {
    let count = tree.nodes.len();
    let mut step: Vec<Option<usize>> = Vec::with_capacity(count);
    let engine = inside(tree, is_engine);
    let mut closure_ends: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let around = node.parent.and_then(|parent| step[parent as usize]);
        step.push(if is_optimizer_step(&node.call.name) { Some(at) } else { around });
        if let Some(step) = step[at].filter(|_| engine[at]) {
            closure_ends.insert(step, at);
        }
    }
    let own = |at: usize, step: usize| at == step || closure_ends.get(&step).is_none_or(|&end| at > end);
    (0..count).map(|at| step[at].is_some_and(|step| own(at, step))).collect()
}

/// Whether an event of this name is a data loader's creation of the next batch.
fn is_loader(name: &str) -> bool {
    EventName::parse(name) == EventName::DataLoader
}

/// Returns for each node whether it is such an event, or inside one.
fn inside(tree: &OpTree, is: impl Fn(&str) -> bool) -> Vec<bool> {
    let mut inside: Vec<bool> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let around = node.parent.is_some_and(|parent| inside[parent as usize]);
        inside.push(around || is(&node.call.name));
    }
    inside
}

fn storage(trace: &ExecutionGraph, tensor: TensorId) -> u32 {
    trace.tensors.get(tensor).storage.0
}

/// Adds the copies: inside the script's own moves, otherwise at the beginning of the step. Returns their number.
pub(super) fn copy(branches: &mut Vec<Branch>, copied: &InputCopies) -> usize {
    let mut count = 0;
    for branch in branches.iter_mut() {
        fill(branch, copied, &mut count);
    }
    let own: Vec<Branch> =
        copied.unmoved.iter().map(|tensor| build::to_device(on_host(tensor), false)).collect();
    count += own.len();
    // A batch exists once its loader has created it.
    let loader = branches.iter().position(|branch| is_loader(branch.name())).map_or(0, |at| at + 1);
    branches.splice(loader..loader, own);
    count
}

fn fill(branch: &mut Branch, copied: &InputCopies, count: &mut usize) {
    if branch.origin.is_some_and(|origin| copied.nodes.contains(&origin)) {
        if let Some(tensor) = branch.call.tensor_at(0) {
            let moved = build::to_device(on_host(tensor), branch.call.flag_at(TO_NON_BLOCKING) == Some(true));
            branch.children = moved.children;
            *count += 1;
        }
        return;
    }
    branch.children.iter_mut().for_each(|child| fill(child, copied, count));
}

fn on_host(tensor: &Tensor) -> Tensor {
    Tensor { device: Device::Cpu, ..tensor.clone() }
}
