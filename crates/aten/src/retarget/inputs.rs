//! Copies of the batch to the device.

use std::collections::BTreeSet;

use steptime_graph::execution::{ExecutionGraph, NodeId, TensorId};

use super::branch::Branch;
use super::{ENGINE, build};
use crate::call::{Device, Tensor};
use crate::derive::{OpTree, TreeKind};
use crate::from_execution;

/// Where PyTorch's optimizers say that they run.
const OPTIMIZER: &str = "Optimizer.step";

/// What has to be copied to the device.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// The script's own moves, which did nothing on the CPU.
    pub nodes: BTreeSet<NodeId>,
    /// What they move.
    pub tensors: BTreeSet<TensorId>,
    /// Where the script has none: tensors that the forward pass reads and that nothing in the step made or
    /// updates, in the order of their use.
    pub unmoved: Vec<Tensor>,
}

/// Finds what to copy: what the script moves to its device with `to`; else the tensors that look like a batch.
pub(super) fn find(trace: &ExecutionGraph, tree: &OpTree) -> Copied {
    let mut copied = Copied::default();
    for (at, node) in tree.nodes.iter().enumerate() {
        let outermost = node.parent.is_none_or(|p| tree.nodes[p as usize].kind == TreeKind::Annotation);
        let leaf = tree.nodes.get(at + 1).is_none_or(|next| next.parent != Some(at as u32));
        if let Some(origin) = node.origin
            && node.call.name == "aten::to"
            && outermost
            && leaf
            && let Some((_, tensor)) = trace.input_tensors(origin).next()
            && trace.tensors.get(tensor).producer.is_none()
        {
            copied.nodes.insert(origin);
            copied.tensors.insert(tensor);
        }
    }
    if copied.nodes.is_empty() {
        copied.unmoved = unmoved(trace, tree);
    }
    copied
}

/// What the forward pass reads that is older than the step, is not updated in it, and is not only a place to
/// index with.
fn unmoved(trace: &ExecutionGraph, tree: &OpTree) -> Vec<Tensor> {
    let is_engine = |name: &str| name.starts_with(ENGINE);
    let end = tree.nodes.iter().position(|node| is_engine(&node.call.name)).unwrap_or(tree.nodes.len());
    if !tree.nodes.iter().any(|node| node.call.name.starts_with(OPTIMIZER)) {
        return Vec::new();
    }
    let mut kept = BTreeSet::new();
    for (node, inside) in tree.nodes.iter().zip(optimizing(tree)) {
        let Some(origin) = node.origin else { continue };
        let updates = inside || node.call.name.contains("batch_norm");
        if updates {
            kept.extend(
                trace.input_tensors(origin).skip(usize::from(!inside)).map(|(_, t)| storage(trace, t)),
            );
        }
    }
    let mut found: Vec<TensorId> = Vec::new();
    for node in tree.nodes[..end].iter().filter(|node| node.call.name != "aten::index") {
        let outermost = node.parent.is_none_or(|p| tree.nodes[p as usize].kind == TreeKind::Annotation);
        for (_, tensor) in node.origin.filter(|_| outermost).into_iter().flat_map(|o| trace.input_tensors(o))
        {
            let row = trace.tensors.get(tensor);
            let old = row.producer.is_none() && row.numel > 0 && !trace.tensors.shape(tensor).is_empty();
            if old && !kept.contains(&storage(trace, tensor)) && !found.contains(&tensor) {
                found.push(tensor);
            }
        }
    }
    found.into_iter().filter_map(|tensor| from_execution::tensor(trace, tensor)).collect()
}

/// For each node, whether it is in an optimizer's step.
pub(super) fn optimizing(tree: &OpTree) -> Vec<bool> {
    let mut inside: Vec<bool> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let around = node.parent.is_some_and(|parent| inside[parent as usize]);
        inside.push(around || node.call.name.starts_with(OPTIMIZER));
    }
    inside
}

fn storage(trace: &ExecutionGraph, tensor: TensorId) -> u32 {
    trace.tensors.get(tensor).storage.0
}

/// Puts the copies in: inside the script's own moves, else at the beginning of the step. Returns how many.
pub(super) fn copy(branches: &mut Vec<Branch>, copied: &Copied) -> usize {
    let mut count = 0;
    for branch in branches.iter_mut() {
        fill(branch, copied, &mut count);
    }
    let own: Vec<Branch> = copied.unmoved.iter().map(|tensor| build::to_device(on_host(tensor))).collect();
    count += own.len();
    branches.splice(0..0, own);
    count
}

fn fill(branch: &mut Branch, copied: &Copied, count: &mut usize) {
    if branch.origin.is_some_and(|origin| copied.nodes.contains(&origin)) {
        if let Some(tensor) = branch.call.tensor(0) {
            let moved = build::to_device(on_host(tensor));
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
