//! Tensors that are not trained, and that the first rank broadcasts to all: running statistics, indices.

use steptime_aten::{Arg, Device, Dtype, Tensor};
use steptime_graph::CollectiveKind;
use steptime_step::{NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use crate::exchange::{NewCollective, flat, free_stream, wait};
use crate::new_ops::{ints, op};
use crate::passes::Passes;

/// Argument positions of a batch norm's running mean and variance.
const STATISTICS: [usize; 2] = [3, 4];

/// Inserts the broadcast of the first rank's buffers before the forward pass (`broadcast_buffers`); returns the number of buffers.
pub(super) fn share(step: &StepIr, patch: &mut Patch, ranks: u32) -> usize {
    let uses = Uses::find(step);
    let passes = Passes::find(step);
    let buffers = find(step, &uses, &passes.forward);
    let Some(&first) = passes.forward.iter().find(|&&op| !copies_inputs(step, op)) else { return 0 };
    let stream = free_stream(step);
    let (mut sent, mut came) = (Vec::new(), Vec::new());
    for dtype in [Dtype::F32, Dtype::I64] {
        let own: Vec<TensorId> =
            buffers.iter().copied().filter(|&buffer| step.tensors[buffer].value.dtype == dtype).collect();
        if !own.is_empty() {
            broadcast(step, patch, &own, (ranks, stream), [&mut sent, &mut came]);
        }
    }
    let ops = sent.into_iter().chain(came);
    patch.insert.extend(ops.map(|op| (Place::Before(first), op)));
    buffers.len()
}

/// Running statistics of norms, and integer tensors on the device from before the step.
fn find(step: &StepIr, uses: &Uses, forward: &[OpId]) -> Vec<TensorId> {
    let mut found: Vec<TensorId> = Vec::new();
    let from_host = forward.iter().any(|&op| copies_inputs(step, op));
    for op in forward.iter().flat_map(|&op| step.subtree(op)) {
        let Some(call) = step.ops[op].call.as_deref() else { continue };
        let statistics = STATISTICS.iter().filter(|_| step.ops[op].name == "aten::batch_norm");
        let statistics = statistics.filter_map(|&at| call.inputs.get(at)?.tensors().first().copied());
        // A copy that an op makes inside itself has no memory of its own here.
        let whole = call.takes().filter(|&tensor| {
            let row = &step.tensors[tensor];
            from_host && row.storage.is_some() && is_number(&row.value)
        });
        for tensor in statistics.chain(whole) {
            if uses.producer(tensor).is_none() && !found.contains(&tensor) {
                found.push(tensor);
            }
        }
    }
    found
}

fn is_number(value: &Tensor) -> bool {
    value.dtype == Dtype::I64 && value.device == Device::Cuda
}

/// Whether an op copies the batch to the device.
pub(crate) fn copies_inputs(step: &StepIr, op: OpId) -> bool {
    let on_host = |tensor: TensorId| step.tensors[tensor].value.device != Device::Cuda;
    step.subtree(op)
        .into_iter()
        .filter_map(|op| step.ops[op].call.as_deref())
        .any(|call| call.takes().any(on_host))
}

/// Broadcasts buffers of one type: flattened into one tensor, sent, and copied back.
fn broadcast(
    step: &StepIr,
    patch: &mut Patch,
    buffers: &[TensorId],
    (ranks, stream): (u32, u32),
    [sent, came]: [&mut Vec<NewOp>; 2],
) {
    let dtype = step.tensors[buffers[0]].value.dtype;
    let counts: Vec<i64> = buffers.iter().map(|&buffer| step.tensors[buffer].value.numel() as i64).collect();
    let all = patch.tensor(step, flat(counts.iter().sum(), dtype));
    let list = || Arg::Tensors(buffers.to_vec());
    let mut inside = Vec::with_capacity(buffers.len() + 1);
    let mut parts = Vec::with_capacity(buffers.len());
    for (&buffer, &count) in buffers.iter().zip(&counts) {
        let part = patch.tensor(step, flat(count, dtype));
        inside.push(op("aten::view", vec![Arg::Tensor(buffer), ints(&[-1])], part));
        parts.push(part);
    }
    inside.push(op("aten::cat", vec![Arg::Tensors(parts), Arg::Int(0)], all));
    sent.push(op("aten::flatten_dense_tensors", vec![list()], all).with(inside));
    let broadcast = NewCollective {
        kind: CollectiveKind::Broadcast,
        ranks,
        sent: all,
        received: all,
        beside: Some(stream),
    };
    sent.push(broadcast.op());
    let (mut start, mut inside, mut pairs) = (0, Vec::new(), Vec::new());
    for (&buffer, &count) in buffers.iter().zip(&counts) {
        let value = step.tensors[buffer].value.clone();
        let narrowed = patch.tensor(step, Tensor { offset: start as u64, ..flat(count, dtype) });
        let viewed = patch.tensor(step, Tensor { offset: start as u64, ..value.clone() });
        inside.push(narrow(all, (start, count), narrowed));
        inside.push(op("aten::view", vec![Arg::Tensor(narrowed), ints(&value.shape)], viewed));
        start += count;
        pairs.push((buffer, viewed));
    }
    came.push(wait(stream));
    came.push(NewOp::around("aten::unflatten_dense_tensors", inside));
    came.extend(pairs.into_iter().map(|(buffer, part)| {
        op("aten::copy_", vec![Arg::Tensor(buffer), Arg::Tensor(part), Arg::Bool(false)], buffer)
    }));
}

/// A part of a flat tensor, with the ops that create the view.
fn narrow(whole: TensorId, (start, count): (i64, i64), part: TensorId) -> NewOp {
    let inputs = |last: Vec<i64>| {
        std::iter::once(Arg::Tensor(whole)).chain(last.into_iter().map(Arg::Int)).collect::<Vec<_>>()
    };
    let strided = vec![Arg::Tensor(whole), ints(&[count]), ints(&[1]), Arg::Int(start)];
    let slice = op("aten::slice", inputs(vec![0, start, start + count, 1]), part).with(vec![op(
        "aten::as_strided",
        strided,
        part,
    )]);
    op("aten::narrow", inputs(vec![0, start, count]), part).with(vec![slice])
}
