//! `DistributedDataParallel`: gradients of replicated parameters are averaged, bucket by bucket, during the backward pass.
//!
//! As in PyTorch, buckets are filled in the order in which gradients arrived in the first step.

use steptime_aten::Dtype;

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::ops::{copy, exchange, views};
use crate::recorder::OP;
use crate::tensor::Tensor;

/// Handles the gradient of a parameter: it is copied to its bucket, and a full bucket is averaged.
pub(crate) fn ready(e: &mut Eager, parameter: usize) {
    let replicated = e.parameters[parameter].replicated;
    let Some(world) = e.world.as_mut().filter(|_| replicated) else { return };
    let reducer = &mut world.reducer;
    let Some(&(at, start)) = reducer.places.get(&parameter) else {
        reducer.order.push(parameter);
        return;
    };
    reducer.filled[at] += 1;
    let full = reducer.filled[at] == reducer.buckets[at].parameters.len();
    let Some(bucket) = reducer.buckets[at].memory.clone() else { return };
    let Some(grad) = e.parameters[parameter].grad.clone() else { return };
    let view = e.view(&bucket, &grad.shape, &grad.strides, start);
    e.node("torch::distributed::reducer::mul_out", OP, inputs![&view], |e| {
        let share = e.host(&[], Dtype::F32);
        e.op("aten::mul.out", inputs![&grad, &share, &view], |_| view.clone());
    });
    if full {
        exchange::all_reduce(e, &bucket);
    }
}

/// Copies averages back to the gradients at the end of the backward pass. In the first step, makes the buckets instead.
pub(crate) fn finish(e: &mut Eager) {
    let Some(world) = e.world.as_mut() else { return };
    if world.reducer.buckets.is_empty() {
        let of = &e.parameters;
        world.reducer.deal(|parameter| of[parameter].tensor.numel());
        let sizes: Vec<i64> = world.reducer.buckets.iter().map(|bucket| bucket.elements).collect();
        let memory: Vec<Tensor> = sizes.iter().map(|&size| e.empty(&[size], Dtype::F32)).collect();
        if let Some(world) = &mut e.world {
            world.reducer.buckets.iter_mut().zip(memory).for_each(|(bucket, own)| bucket.memory = Some(own));
        }
        return;
    }
    let buckets: Vec<(Vec<usize>, Tensor)> = world
        .reducer
        .buckets
        .iter()
        .filter_map(|b| Some((b.parameters.clone(), b.memory.clone()?)))
        .collect();
    for (parameters, memory) in buckets {
        let mut start = 0;
        let mut pairs = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let Some(grad) = e.parameters[parameter].grad.clone() else { continue };
            let view = views::as_strided(e, &memory, &grad.shape, &grad.strides, Some(start));
            start += grad.numel();
            pairs.push((grad, view));
        }
        for (grad, view) in pairs {
            e.node("torch.distributed.ddp.reducer::copy_bucket_to_grad", OP, &[Input::Tensor(&grad)], |e| {
                copy::copy_(e, &grad, &view);
            });
        }
    }
}

/// Runs the forward pass of the replicated part; its untrained tensors are broadcast from the first rank.
pub(crate) fn forward(e: &mut Eager, buffers: &[Tensor], body: impl FnOnce(&mut Eager) -> Tensor) -> Tensor {
    e.label("DistributedDataParallel.forward", |e| {
        if !buffers.is_empty() {
            share(e, buffers);
        }
        body(e)
    })
}

/// Broadcasts the first rank's tensors: flattened into one, which is then copied back.
fn share(e: &mut Eager, buffers: &[Tensor]) {
    let learning = std::mem::replace(&mut e.learning, false);
    let flat = e.composite("aten::flatten_dense_tensors", inputs![buffers], |e| {
        for buffer in buffers {
            views::view(e, buffer, &[-1]);
        }
        views::joined(e, buffers, 0)
    });
    exchange::broadcast(e, &flat);
    exchange::wait(e);
    let parts = e.composite("aten::unflatten_dense_tensors", inputs![&flat, buffers], |e| {
        let mut start = 0;
        let mut parts = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            let part = views::narrow_rows(e, &flat, start, buffer.numel());
            parts.push(views::view(e, &part, &buffer.shape));
            start += buffer.numel();
        }
        parts
    });
    for (buffer, part) in buffers.iter().zip(&parts) {
        copy::copy_(e, buffer, part);
    }
    e.learning = learning;
}
