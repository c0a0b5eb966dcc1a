//! What the CPU computes part by part and CUDA at once: attention with its softmax, recurrent networks.
//!
//! On the CPU, the backward engine visits the gradient of each part. The first becomes the gradient of the whole, the
//! others are left out.

use std::collections::{BTreeMap, BTreeSet};

use steptime_graph::execution::{ExecutionGraph, NodeId};
use steptime_graph::names::EventName;

use super::branch::Branch;
use super::devices::on_gpu;
use super::{attention, autocast, recurrent};
use crate::call::{Arg, OpCall};
use crate::derive::{OpTree, TreeKind};
use crate::from_execution;

/// Replaces such ops, and the functions of the backward engine that belong to their parts.
pub(super) fn merge(trace: &ExecutionGraph, tree: &OpTree, branches: &mut Vec<Branch>) {
    let mut wholes: BTreeMap<NodeId, OpCall> = tree
        .nodes
        .iter()
        .filter(|node| attention::at_once(&node.call) || recurrent::at_once(&node.call))
        .filter_map(|node| Some((node.origin?, node.call.clone())))
        .collect();
    if wholes.is_empty() {
        return;
    }
    narrow(trace, tree, &mut wholes);
    let whole = |part: NodeId| trace.tree.ancestors(part).find(|node| wholes.contains_key(node));
    let parts: BTreeMap<NodeId, NodeId> =
        trace.ids().filter_map(|node| Some((node, whole(trace.pairing.forward(node)?)?))).collect();
    let mut merge = Merge { trace, wholes, parts, done: BTreeSet::new() };
    merge.all(branches);
}

/// Under autocast cuDNN takes 16 bits where the parts on the CPU do.
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
    /// The ops that CUDA computes at once.
    wholes: BTreeMap<NodeId, OpCall>,
    /// Functions of the backward engine, and the op whose part they are the gradient of.
    parts: BTreeMap<NodeId, NodeId>,
    /// Ops whose gradient is there.
    done: BTreeSet<NodeId>,
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
            }
            return Some(branch);
        }
        let function = branch.children.iter().position(|child| self.part(child).is_some());
        if let Some((at, function)) = function.and_then(|at| Some((at, branch.children[at].origin?))) {
            let whole = self.parts[&function];
            if !self.done.insert(whole) {
                return None;
            }
            let gradient = self.trace.input_tensors(function).next();
            let gradient =
                gradient.and_then(|(_, tensor)| from_execution::tensor(self.trace, tensor)).map(on_gpu);
            let call = &self.wholes[&whole];
            let (name, inside) = recurrent::backward(call, gradient.clone()).unwrap_or_else(|| {
                let call = attention::whole_backward(call, gradient.map_or(Arg::None, Arg::Tensor));
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

    /// The op of whose part a branch is the gradient.
    fn part(&self, branch: &Branch) -> Option<NodeId> {
        let function = branch.origin.filter(|_| branch.kind == TreeKind::Function)?;
        self.parts.get(&function).copied()
    }
}
