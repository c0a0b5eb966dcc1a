//! Collectives, as run by `torch.distributed` over NCCL.

use steptime_aten::Dtype;
use steptime_aten::derive::exchange::{self, NOTE};
use steptime_graph::CollectiveKind;

use crate::argument::{Input, OpResults, inputs};
use crate::eager::Eager;
use crate::ops::fill;
use crate::recorder::{Exchange, LABEL, OP};
use crate::tensor::Tensor;

/// Averages a bucket of gradients over all ranks, on a separate stream.
pub(crate) fn all_reduce(e: &mut Eager, bucket: &Tensor) {
    let list = std::slice::from_ref(bucket);
    let asked = inputs![list, Input::None, Input::None, Input::None, true, -1_i64];
    let attributes = attributes(CollectiveKind::AllReduce, "allreduce", [bucket.numel(); 2]);
    run(e, asked, attributes, &Input::Tensors(list), None);
}

/// Broadcasts the first rank's values, on a separate stream.
pub(crate) fn broadcast(e: &mut Eager, x: &Tensor) {
    let list = std::slice::from_ref(x);
    let asked = inputs![list, Input::None, 0_i64, 0_i64, true, -1_i64];
    let attributes = CollectiveAttributes {
        dtype: x.dtype,
        ..attributes(CollectiveKind::Broadcast, "broadcast", [x.numel(); 2])
    };
    run(e, asked, attributes, &Input::Tensors(list), None);
}

/// Makes later ops wait for the last collective.
pub(crate) fn wait(e: &mut Eager) {
    e.node(NOTE, OP, &[], |_| ());
}

/// Sends each rank its part of a flat tensor, and returns the received parts, concatenated. The script waits for it.
pub(crate) fn all_to_all(e: &mut Eager, x: &Tensor, sent: &[i64], received: &[i64]) -> Tensor {
    let result = exchanged(e, "A2A", x, sent, received);
    let (sent, received) = (sent.to_vec(), received.to_vec());
    e.track(result, "A2ABackward", &[x], move |e, grad, _| {
        Some(exchanged_in(e, grad, &received, &sent)).into_iter().map(Some).collect()
    })
}

fn exchanged(e: &mut Eager, function: &str, x: &Tensor, sent: &[i64], received: &[i64]) -> Tensor {
    e.node(function, OP, inputs![x, sent, received], |e| exchanged_in(e, x, sent, received))
}

fn exchanged_in(e: &mut Eager, x: &Tensor, sent: &[i64], received: &[i64]) -> Tensor {
    let result = fill::new_empty(e, x, &[received.iter().sum()]);
    let asked = inputs![&result, x, Input::None, received, sent, false, -1_i64];
    let attributes = attributes(CollectiveKind::AllToAll, "all_to_allv", [x.numel(), result.numel()]);
    run(e, asked, attributes, &Input::Tensor(x), Some([sent, received]));
    result
}

/// Sums `[ranks * n, columns]` over all ranks, and returns this rank's `[n, columns]`.
pub(crate) fn reduce_scatter(e: &mut Eager, x: &Tensor, ranks: i64) -> Tensor {
    let shape = [x.size(0) / ranks.max(1), x.size(1)];
    let result = e.node("ReduceScatter", OP, inputs![x], |e| {
        let result = fill::new_empty(e, x, &shape);
        let asked = inputs![&result, x, Input::None, Input::None, false, -1_i64];
        let attributes =
            attributes(CollectiveKind::ReduceScatter, "_reduce_scatter_base", [x.numel(), result.numel()]);
        run(e, asked, attributes, &Input::Tensor(x), None);
        result
    });
    let whole = x.shape.clone();
    e.track(result, "ReduceScatterBackward", &[x], move |e, grad, _| vec![Some(all_gather(e, grad, &whole))])
}

/// Concatenates the tensors of all ranks.
fn all_gather(e: &mut Eager, x: &Tensor, whole: &[i64]) -> Tensor {
    let x = &crate::ops::views::contiguous_of(e, x);
    let result = fill::new_empty(e, x, whole);
    let asked = inputs![&result, x, Input::None, false, -1_i64];
    let attributes = attributes(CollectiveKind::AllGather, "_allgather_base", [x.numel(), result.numel()]);
    run(e, asked, attributes, &Input::Tensor(x), None);
    result
}

/// Attributes of a collective.
struct CollectiveAttributes {
    kind: CollectiveKind,
    /// Name in NCCL's hooks.
    operation: &'static str,
    elements: [i64; 2],
    dtype: Dtype,
}

fn attributes(kind: CollectiveKind, operation: &'static str, elements: [i64; 2]) -> CollectiveAttributes {
    CollectiveAttributes { kind, operation, elements, dtype: Dtype::F32 }
}

/// Runs the op that requests a collective, and inside it NCCL's notes.
fn run(
    e: &mut Eager,
    asked: &[Input<'_>],
    attributes: CollectiveAttributes,
    data: &Input<'_>,
    splits: Option<[&[i64]; 2]>,
) {
    let ranks = e.world.as_ref().map_or(1, |world| world.ranks);
    let dtype = if attributes.dtype == Dtype::I64 { "Long" } else { "Float" };
    let noted =
        Exchange { operation: attributes.operation, elements: attributes.elements, dtype, ranks, splits };
    let (op, label) = exchange::names(attributes.kind);
    e.node(op, OP, asked, |e| {
        let row = e.log.begin(NOTE, OP, &[*data]);
        e.log.exchange(row, &noted);
        e.node(label, LABEL, &[*data], |_| ());
        e.log.end(row, &().results());
    });
}
