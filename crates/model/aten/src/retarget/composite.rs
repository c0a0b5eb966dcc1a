//! Ops that the CPU computes by parts and CUDA at once: attention with its softmax, recurrent networks.
//!
//! On the CPU, the backward engine visits the gradient of each part. The first becomes the gradient of the whole, the
//! others are removed.

use std::collections::{BTreeMap, BTreeSet};

use steptime_graph::execution::{ExecutionGraph, NodeId, TensorId};
use steptime_graph::names::EventName;

use super::branch::Branch;
use super::devices::on_gpu;
use super::{attention, autocast, recurrent};
use crate::call::{Arg, OpCall};
use crate::derive::{OpTree, TreeKind};
use crate::from_execution;

/// Replaces such ops, and the functions of the backward engine that belong to their parts. Returns the storages of attention's results,
/// which have the layout of the parts' results.
pub(super) fn merge(trace: &ExecutionGraph, tree: &OpTree, branches: &mut Vec<Branch>) -> BTreeSet<u32> {
    let mut wholes: BTreeMap<NodeId, OpCall> = tree
        .nodes
        .iter()
        .filter(|node| attention::at_once(&node.call) || recurrent::at_once(&node.call))
        .filter_map(|node| Some((node.origin?, node.call.clone())))
        .collect();
    if wholes.is_empty() {
        return BTreeSet::new();
    }
    narrow(trace, tree, &mut wholes);
    let whole = |part: NodeId| trace.tree.ancestors(part).find(|node| wholes.contains_key(node));
    let parts: BTreeMap<NodeId, NodeId> =
        trace.ids().filter_map(|node| Some((node, whole(trace.pairing.forward(node)?)?))).collect();
    let gradients = gradients(trace, &parts);
    let mut merge = Merge { trace, wholes, parts, gradients, done: BTreeSet::new(), given: BTreeSet::new() };
    merge.all(branches);
    merge.given
}

/// Returns the results of the gradients of parts that other ops take, by the op of the parts.
fn gradients(
    trace: &ExecutionGraph,
    parts: &BTreeMap<NodeId, NodeId>,
) -> BTreeMap<NodeId, BTreeSet<TensorId>> {
    let of = |node: NodeId| {
        let mut around = std::iter::once(node).chain(trace.tree.ancestors(node));
        around.find_map(|node| parts.get(&node).copied())
    };
    let mut found: BTreeMap<NodeId, BTreeSet<TensorId>> = BTreeMap::new();
    for node in trace.ids() {
        let taker = of(node);
        for (_, tensor) in trace.input_tensors(node) {
            let maker = trace.tensors.get(tensor).producer.and_then(of);
            if let Some(maker) = maker.filter(|_| maker != taker) {
                found.entry(maker).or_default().insert(tensor);
            }
        }
    }
    found
}

/// Narrows recurrent networks: under autocast cuDNN computes in 16 bits if the parts on the CPU do.
fn narrow(trace: &ExecutionGraph, tree: &OpTree, wholes: &mut BTreeMap<NodeId, OpCall>) {
    let mut parts: BTreeMap<NodeId, Vec<&OpCall>> = BTreeMap::new();
    for node in &tree.nodes {
        let mut around = node.origin.into_iter().flat_map(|origin| trace.tree.ancestors(origin));
        if let Some(whole) = around.find(|around| wholes.contains_key(around)) {
            parts.entry(whole).or_default().push(&node.call);
        }
    }
    for (whole, parts) in parts {
        let call = wholes.get_mut(&whole).filter(|call| recurrent::at_once(call));
        let narrowed =
            |call: &OpCall| Some(autocast::narrowed(call, autocast::narrows(call, parts.into_iter())?));
        if let Some(call) = call
            && let Some(narrowed) = narrowed(call)
        {
            *call = narrowed;
        }
    }
}

struct Merge<'t> {
    trace: &'t ExecutionGraph,
    /// Ops that CUDA computes at once.
    wholes: BTreeMap<NodeId, OpCall>,
    /// Functions of the backward engine, and the op whose part they are the gradient of.
    parts: BTreeMap<NodeId, NodeId>,
    /// Results of these functions that other ops take.
    gradients: BTreeMap<NodeId, BTreeSet<TensorId>>,
    /// Ops whose gradient was already added.
    done: BTreeSet<NodeId>,
    /// Storages of attention's results.
    given: BTreeSet<u32>,
}

impl Merge<'_> {
    fn all(&mut self, branches: &mut Vec<Branch>) {
        let all = std::mem::take(branches);
        branches.extend(all.into_iter().filter_map(|branch| self.one(branch)));
    }

    fn one(&mut self, mut branch: Branch) -> Option<Branch> {
        if let Some(call) = branch.origin.and_then(|origin| self.wholes.get(&origin)) {
            if recurrent::at_once(&branch.call) {
                branch.children = recurrent::forward(&branch.call, call);
            } else {
                branch.call = attention::whole(&branch.call);
                branch.children = Vec::new();
                self.given.extend(branch.call.output(0).and_then(|result| result.place.number()));
            }
            return Some(branch);
        }
        let function = branch.children.iter().position(|child| self.part(child).is_some());
        if let Some((at, function)) = function.and_then(|at| Some((at, branch.children[at].origin?))) {
            let whole = self.parts[&function];
            if !self.done.insert(whole) {
                return None;
            }
            let described = |tensor: TensorId| from_execution::tensor(self.trace, tensor).map(on_gpu);
            let gradient =
                self.trace.input_tensors(function).next().and_then(|(_, tensor)| described(tensor));
            let call = &self.wholes[&whole];
            let (name, inside) = recurrent::backward(call, gradient.clone()).unwrap_or_else(|| {
                let given: Vec<_> =
                    self.gradients.get(&whole).into_iter().flatten().copied().filter_map(described).collect();
                self.given.extend(given.iter().filter_map(|tensor| tensor.place.number()));
                let gradient = gradient.map_or(Arg::None, Arg::Tensor);
                let call = attention::whole_backward(call, gradient, given);
                (attention::FUNCTION, Branch::new(call, Vec::new()))
            });
            branch.call.name = EventName::engine(name);
            let mut function = branch.children.swap_remove(at);
            function.call.name = name.into();
            function.children = vec![inside];
            branch.children = vec![function];
            return Some(branch);
        }
        self.all(&mut branch.children);
        Some(branch)
    }

    /// Returns the op of whose part a branch is the gradient.
    fn part(&self, branch: &Branch) -> Option<NodeId> {
        let function = branch.origin.filter(|_| branch.kind == TreeKind::Function)?;
        self.parts.get(&function).copied()
    }
}
