//! Gradients of a block summed over all ranks, of which each keeps its part.

use steptime_aten::{Arg, Tensor};
use steptime_graph::CollectiveKind;
use steptime_step::{Call, NewOp, TensorId};

use super::gather::{function, listed, wait_for};
use super::hooks;
use super::shards::{Memory, Shards};
use super::units::Unit;
use super::{REDUCE, streams_wait};
use crate::exchange::{NewCollective, flat};
use crate::new_ops::{ints, op};

/// Calls after a unit's gradients are ready. The first unit does not wait for an earlier one.
pub(super) fn after(
    memory: &mut Memory<'_, '_>,
    unit: &Unit,
    shards: &Shards,
    ranks: u32,
    first: &mut bool,
) -> Vec<NewOp> {
    let name = unit.name.as_deref();
    let count = shards.all.len();
    let hook = |what: &str, hook: hooks::Hook| {
        NewOp::around(&function(what, name), Vec::new()).taking(hook.cost(count))
    };
    vec![
        hook("post_backward_accumulate", hooks::ACCUMULATE),
        hook("post_backward_reshard", hooks::RESHARD),
        reduce(memory, unit, shards, ranks, std::mem::take(first)),
    ]
}

fn reduce(memory: &mut Memory<'_, '_>, unit: &Unit, shards: &Shards, ranks: u32, first: bool) -> NewOp {
    let (count, each) = (i64::from(ranks), shards.elements);
    let all = memory.own(flat(count * each, shards.dtype));
    let within = memory.storage_of(all);
    let rows = memory.within(Tensor::contiguous(&[count, each], shards.dtype), within);
    let gradients = unit.gradients.iter().map(|(_, one)| one.tensor).collect();
    let inputs = vec![Arg::Tensors(gradients), Arg::Int(0), Arg::Int(count), Arg::Tensor(rows)];
    let chunk = |name: &str, outputs: Vec<Arg<TensorId>>| {
        NewOp::new(name, Call { inputs: inputs.clone(), outputs, ..Call::default() })
    };
    let chunked = chunk("aten::_chunk_cat", vec![Arg::Tensor(rows)]).with(listed(memory, shards.all.len()));
    let mut inside: Vec<NewOp> = if first { Vec::new() } else { vec![wait_for(REDUCE)] };
    inside.extend([
        op("aten::empty", vec![ints(&[count * each])], all),
        op("aten::view", vec![Arg::Tensor(all), ints(&[count, each])], rows),
        chunk("fsdp::chunk_cat", Vec::new()).with(vec![chunked]).taking(hooks::CHUNK.cost(0)),
        streams_wait(REDUCE, 0),
        op("aten::empty", vec![ints(&[each])], shards.reduced),
    ]);
    let exchanged = NewCollective {
        kind: CollectiveKind::ReduceScatter,
        ranks,
        sent: all,
        received: shards.reduced,
        beside: None,
    };
    inside.push(exchanged.op().on_stream(REDUCE));
    inside.extend(shards.all.iter().map(|shard| {
        let start = Arg::Int(shard.lies.offset as i64);
        let inputs =
            vec![Arg::Tensor(shards.reduced), ints(&shard.lies.shape), ints(&shard.lies.strides), start];
        op("aten::as_strided", inputs, shard.gradient)
    }));
    NewOp::around(&function("post_backward_reduce", unit.name.as_deref()), inside)
        .taking(hooks::REDUCE.cost(shards.all.len()))
}
