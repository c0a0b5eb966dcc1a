//! Layouts that the `meta` device loses: its convolutions always return channels first, those of a GPU return channels last if
//! their images or weights have them.

use std::collections::BTreeSet;

use steptime_graph::execution::{Arg as Recorded, ArgRange, ExecutionGraph, NodeId, TensorId};
use steptime_graph::names::EventName;

use super::branch::Branch;
use super::build::op;
use crate::call::{Arg, OpCall, Tensor};
use crate::channels_last;
use crate::derive::OpTree;

/// Convolution, with the position of its weight.
const FORWARD: (&str, usize) = ("aten::convolution", 1);
/// Gradients of a convolution, with the positions of the weight and of the weight's gradient. The gradient of the result comes first.
const BACKWARD: (&str, usize, usize) = ("aten::convolution_backward", 2, 1);

/// Sets channels last in the results of such convolutions in a step without memory, in all images derived from them, and in the gradients of
/// their weights. Returns the number of such convolutions.
pub(super) fn put_last(trace: &ExecutionGraph, tree: &mut OpTree) -> usize {
    let lost = tree.nodes.iter().filter(|node| trace.fake && loses(&node.call));
    let lost: Vec<(NodeId, usize)> =
        lost.filter_map(|node| Some((node.origin?, node.call.output(0)?.shape.len()))).collect();
    let Some(&(first, _)) = lost.iter().min() else { return 0 };
    let ranks: BTreeSet<usize> = lost.iter().map(|&(_, rank)| rank).collect();
    let [weights, gradients] = weights(trace, tree);
    // Older tensors keep the layout in which the script made them.
    let comes_of_it = |tensor: &TensorId| {
        let made = trace.tensors.get(*tensor).producer;
        ranks.contains(&trace.tensors.shape(*tensor).len())
            && made.is_some_and(|made| made >= first)
            && !weights.contains(tensor)
            && !gradients.contains(tensor)
    };
    let of_images = |node: NodeId| {
        let takes = trace.input_tensors(node).map(|(_, tensor)| saved(trace, node, tensor));
        takes.chain(trace.output_tensors(node).map(|(_, tensor)| tensor)).filter(comes_of_it).collect()
    };
    let ops = tree.nodes.iter().filter(|node| !node.call.inputs.is_empty());
    let ops: Vec<_> =
        ops.filter_map(|node| Some((node.call.name.as_str(), of_images(node.origin?)))).collect();
    let mut images = channels_last::images(&ops, |tensor| trace.tensors.shape(tensor));
    images.extend(gradients);
    for node in &mut tree.nodes {
        let Some(origin) = node.origin else { continue };
        let is_image = |tensor: TensorId| images.contains(&saved(trace, origin, tensor));
        let put = |range: ArgRange, args: &mut [Arg]| {
            for (&recorded, arg) in trace.args.get(range).iter().zip(args) {
                put_one(trace, recorded, arg, &is_image);
            }
        };
        put(trace.inputs(origin), &mut node.call.inputs);
        put(trace.outputs(origin), &mut node.call.outputs);
    }
    lost.len()
}

/// Whether a convolution has images or a weight with channels last, but returns channels first.
fn loses(call: &OpCall) -> bool {
    let (name, weight) = FORWARD;
    let last = [0, weight].into_iter().filter_map(|at| call.tensor_at(at)).any(Tensor::is_channels_last);
    let first = call.output(0).is_some_and(|given| !given.is_channels_last() && given.is_contiguous());
    call.name == name && last && first
}

/// Returns the weights of convolutions, and the gradients of those that have channels last.
fn weights(trace: &ExecutionGraph, tree: &OpTree) -> [BTreeSet<TensorId>; 2] {
    let [mut weights, mut gradients] = [BTreeSet::new(), BTreeSet::new()];
    for node in &tree.nodes {
        let Some(origin) = node.origin else { continue };
        let (taken, given) = match node.call.name.as_str() {
            name if name == FORWARD.0 => (FORWARD.1, None),
            name if name == BACKWARD.0 => (BACKWARD.1, Some(BACKWARD.2)),
            _ => continue,
        };
        let weight = trace.input_tensors(origin).find(|&(at, _)| at == taken);
        weights.extend(weight.map(|(_, tensor)| tensor));
        let given = trace.output_tensors(origin).find(|&(at, _)| Some(at) == given).map(|(_, tensor)| tensor);
        if node.call.tensor_at(taken).is_some_and(Tensor::is_channels_last) {
            gradients.extend(given);
        } else {
            weights.extend(given);
        }
    }
    [weights, gradients]
}

/// Assigns gradients to their parameters directly if a copy only changed a layout that no longer differs.
pub(super) fn accumulate(trace: &ExecutionGraph, branches: &mut [Branch]) {
    for branch in branches {
        let is_accumulation = EventName::parse(branch.name()).is_accumulation();
        let copied = branch.children.iter().find(|child| is_accumulation && child.name() == "aten::copy_");
        if let Some((to, from)) = copied.and_then(|copy| relaid(trace, copy)) {
            branch.children = vec![op("detach", vec![Arg::Tensor(from)], Some(to))];
        }
        accumulate(trace, &mut branch.children);
    }
}

/// Returns target and source of a copy between layouts that differed when recorded, but no longer differ.
fn relaid(trace: &ExecutionGraph, copy: &Branch) -> Option<(Tensor, Tensor)> {
    let mut recorded = trace.input_tensors(copy.origin?).map(|(_, tensor)| trace.tensors.strides(tensor));
    let (to, from) = (copy.call.tensor_at(0)?, copy.call.tensor_at(1)?);
    let alike = (&to.strides, to.dtype) == (&from.strides, from.dtype);
    (alike && recorded.next()? != recorded.next()?).then(|| (to.clone(), from.clone()))
}

/// Returns the tensor of the forward pass that a function of the backward pass saved: in the backward pass it is another object, which no op makes.
fn saved(trace: &ExecutionGraph, node: NodeId, tensor: TensorId) -> TensorId {
    let looks =
        |id: TensorId| (trace.tensors.shape(id), trace.tensors.strides(id), trace.tensors.get(id).dtype);
    if trace.tensors.get(tensor).producer.is_some() {
        return tensor;
    }
    let Some(op) = trace.tree.ancestors(node).find_map(|node| trace.pairing.forward(node)) else {
        return tensor;
    };
    let all = trace.output_tensors(op).chain(trace.input_tensors(op));
    all.map(|(_, id)| id).find(|&id| looks(id) == looks(tensor)).unwrap_or(tensor)
}

fn put_one(trace: &ExecutionGraph, recorded: Recorded, arg: &mut Arg, is_image: &impl Fn(TensorId) -> bool) {
    let put = |id: TensorId, tensor: &mut Tensor| {
        if tensor.is_contiguous()
            && is_image(id)
            && let Some(strides) = channels_last::strides(&tensor.shape)
        {
            tensor.strides = strides;
        }
    };
    match (recorded, arg) {
        (Recorded::Tensor(id), Arg::Tensor(tensor)) => put(id, tensor),
        (Recorded::TensorList(range), Arg::Tensors(tensors)) => {
            trace.args.tensor_list(range).iter().zip(tensors).for_each(|(&id, tensor)| put(id, tensor));
        }
        _ => {}
    }
}
