//! Calls from the nodes of an execution trace.

use steptime_graph::execution::{Arg as Recorded, ExecutionGraph, NodeId, Scalar, TensorId};

use crate::argument;
use crate::call::{Arg, OpCall, Settings, Tensor};
use crate::dtype::Dtype;
use crate::memory_key::Place;
use crate::ops::copy;

/// Returns the call that a node recorded, with its results. A tensor of unknown type is absent.
///
/// # Panics
/// If the node is of another graph and out of bounds.
#[must_use]
pub fn op_call(graph: &ExecutionGraph, node: NodeId) -> OpCall {
    let args = |range| graph.args.get(range).iter().map(|&arg| argument_of(graph, arg)).collect();
    let mut call = OpCall {
        name: graph.node_name(node).into(),
        inputs: args(graph.inputs(node)),
        outputs: args(graph.outputs(node)),
        settings: Settings::default(),
    };
    if let [Recorded::Tensor(to), Recorded::Tensor(from), ..] = graph.args.get(graph.inputs(node))
        && same(graph, *to, *from)
    {
        copy::onto_itself(&mut call);
    }
    if DEPENDS_ON_ENTRIES.contains(&call.name.as_str())
        && call.input_tensors().any(|(.., tensor)| tensor.is_sparse())
    {
        call.inputs.extend(entries(graph, node).into_iter().flatten());
    }
    call
}

/// Ops whose work depends on the entries of a sparse argument, which the argument does not describe.
const DEPENDS_ON_ENTRIES: [&str; 2] = ["aten::_coalesce", "aten::addmm"];

/// Returns indices and values of the sparse argument, from ops inside the node that read them.
fn entries(graph: &ExecutionGraph, node: NodeId) -> Option<[Arg; 2]> {
    let part = |name: &str| {
        let looks = inside(graph, node).find(|&inner| graph.node_name(inner) == name)?;
        graph.args.get(graph.outputs(looks)).first().map(|&arg| argument_of(graph, arg))
    };
    Some([part("aten::_indices")?, part("aten::_values")?])
}

/// Returns the nodes inside a node, each before those inside it.
fn inside(graph: &ExecutionGraph, node: NodeId) -> impl Iterator<Item = NodeId> {
    let mut left: Vec<NodeId> = graph.tree.children(node).iter().rev().copied().collect();
    std::iter::from_fn(move || {
        let next = left.pop()?;
        left.extend(graph.tree.children(next).iter().rev());
        Some(next)
    })
}

/// Whether two arguments are the same tensor.
fn same(graph: &ExecutionGraph, a: TensorId, b: TensorId) -> bool {
    let (a, b) = (graph.tensors.get(a), graph.tensors.get(b));
    a == b
}

/// Returns a recorded argument. A tensor of unknown type is absent.
///
/// # Panics
/// If it is of another graph and out of bounds.
#[must_use]
pub fn argument_of(graph: &ExecutionGraph, arg: Recorded) -> Arg {
    match arg {
        Recorded::None | Recorded::Unknown => Arg::None,
        Recorded::Tensor(id) => tensor(graph, id).map_or(Arg::None, Arg::Tensor),
        Recorded::TensorList(range) => Arg::Tensors(
            graph
                .args
                .tensor_list(range)
                .iter()
                .map(|&id| tensor(graph, id).unwrap_or_else(argument::missing))
                .collect(),
        ),
        Recorded::Scalar(Scalar::Bool(value)) => Arg::Bool(value),
        Recorded::Scalar(Scalar::Int(value)) => Arg::Int(value),
        Recorded::Scalar(Scalar::Float(value)) => Arg::Float(value),
        Recorded::Str(name) | Recorded::Device(name) => Arg::Text(graph.name(name).into()),
        Recorded::List(range) => {
            list(graph.args.get(range).iter().map(|&arg| argument_of(graph, arg)).collect())
        }
    }
}

/// Returns a list of numbers, or of tensors some of which are missing.
fn list(items: Vec<Arg>) -> Arg {
    if items.iter().any(|item| matches!(item, Arg::Tensor(_))) {
        let tensors = items.into_iter().map(|item| match item {
            Arg::Tensor(tensor) => tensor,
            _ => argument::missing(),
        });
        return Arg::Tensors(tensors.collect());
    }
    argument::numbers(&items)
}

/// Returns a recorded tensor; `None` if its type is unknown.
///
/// # Panics
/// If it is of another graph and out of bounds.
#[must_use]
pub fn tensor(graph: &ExecutionGraph, id: TensorId) -> Option<Tensor> {
    let recorded = graph.tensors.get(id);
    let dtype = Dtype::parse(graph.name(recorded.dtype))?;
    // A sparse tensor has a shape and no storage; its strides are recorded as zeros.
    let shaped = !graph.tensors.shape(id).is_empty() && !graph.tensors.shape(id).contains(&0);
    let sparse = shaped && graph.tensors.storage(recorded.storage).address == 0;
    let strides = if sparse { Some(&[][..]) } else { graph.tensors.strides(id) };
    let device = argument::device(graph.name(recorded.device));
    let tensor = argument::tensor(graph.tensors.shape(id), strides, dtype, device);
    let place = Place::storage(recorded.storage.0, graph.tensors.storage(recorded.storage).address);
    Some(Tensor { offset: recorded.offset, place, ..tensor })
}
