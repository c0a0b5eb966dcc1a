//! Moves of tensors to the GPU.

use std::collections::BTreeSet;

use steptime_graph::execution::{Arg as Recorded, ArgRange, ExecutionGraph, TensorId};

use super::inputs::{self, InputCopies};
use crate::call::{Arg, Device, Tensor};
use crate::derive::OpTree;

/// Puts every tensor on the GPU, except for scalars and the batch. Scalars are tensors without dimensions that are older than the step,
/// such as a factor or an optimizer's step count. The batch stays on the host where it is created and copied from.
pub(super) fn to_gpu(trace: &ExecutionGraph, tree: &mut OpTree, copied: &InputCopies) {
    let buffers = buffers(trace, tree);
    for node in &mut tree.nodes {
        let Some(origin) = node.origin.filter(|origin| !copied.host.contains(origin)) else { continue };
        let on_host = if copied.nodes.contains(&origin) { &copied.tensors } else { &BTreeSet::new() };
        let move_all = |range: ArgRange, args: &mut [Arg], on_host: &BTreeSet<TensorId>| {
            for (&recorded, arg) in trace.args.get(range).iter().zip(args) {
                move_one(trace, recorded, arg, on_host, &buffers);
            }
        };
        move_all(trace.inputs(origin), &mut node.call.inputs, on_host);
        // Indices and values of a sparse argument follow the recorded arguments.
        for arg in node.call.inputs.iter_mut().skip(trace.args.get(trace.inputs(origin)).len()) {
            if let Arg::Tensor(tensor) = arg {
                tensor.device = Device::Cuda;
            }
        }
        move_all(trace.outputs(origin), &mut node.call.outputs, &BTreeSet::new());
    }
}

/// Returns the tensors without dimensions that do move: counters of a module, such as those of batch norm, and the step counts of
/// fused optimizers.
fn buffers(trace: &ExecutionGraph, tree: &OpTree) -> BTreeSet<TensorId> {
    let optimizing = inputs::optimizing(tree);
    let counting = tree.nodes.iter().zip(optimizing).filter(|(node, optimizing)| {
        let name = &node.call.name;
        !optimizing && name.ends_with('_') && !name.ends_with("__")
    });
    let origins = counting.filter_map(|(node, _)| node.origin);
    let counters = origins.filter_map(|origin| trace.input_tensors(origin).next());
    let fused = tree.nodes.iter().filter(|node| node.call.name.starts_with("aten::_fused_"));
    let steps = fused.filter_map(|node| node.origin).flat_map(|origin| trace.input_tensors(origin));
    counters.chain(steps).map(|(_, tensor)| tensor).collect()
}

/// Returns a tensor on the GPU.
pub(super) fn on_gpu(tensor: Tensor) -> Tensor {
    Tensor { device: Device::Cuda, ..tensor }
}

fn move_one(
    trace: &ExecutionGraph,
    recorded: Recorded,
    arg: &mut Arg,
    on_host: &BTreeSet<TensorId>,
    buffers: &BTreeSet<TensorId>,
) {
    let place = |id: TensorId, tensor: &mut Tensor| {
        let old = trace.tensors.get(id).producer.is_none();
        let number = old && tensor.shape.is_empty() && !buffers.contains(&id);
        tensor.device = if number || on_host.contains(&id) { Device::Cpu } else { Device::Cuda };
    };
    match (recorded, arg) {
        (Recorded::Tensor(id), Arg::Tensor(tensor)) => place(id, tensor),
        (Recorded::TensorList(range), Arg::Tensors(tensors)) => {
            for (&id, tensor) in trace.args.tensor_list(range).iter().zip(tensors) {
                place(id, tensor);
            }
        }
        (Recorded::List(range), Arg::Tensors(tensors)) => {
            for (&item, tensor) in trace.args.get(range).iter().zip(tensors) {
                if let Recorded::Tensor(id) = item {
                    place(id, tensor);
                }
            }
        }
        _ => {}
    }
}
