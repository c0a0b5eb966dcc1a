//! Parameters gathered from all ranks, and split into those of a block.

use steptime_aten::ops::concat::LISTED_NUMBERS;
use steptime_aten::{Arg, Device, Dtype, Tensor};
use steptime_graph::CollectiveKind;
use steptime_step::{Call, NewOp, TensorId};

use super::hooks;
use super::shards::{Memory, Shards};
use super::{ALL_GATHER, COPY_IN, streams_wait};
use crate::exchange::{NewCollective, flat, wait};
use crate::new_ops::{ints, op};

/// Name of an FSDP function, with the name of its block.
pub(super) fn function(what: &str, name: Option<&str>) -> String {
    name.map_or_else(|| format!("FSDP::{what}"), |name| format!("FSDP::{what} ({name})"))
}

/// The op that gathers all parts, and the memory that receives them.
pub(super) fn all_gather(
    memory: &mut Memory<'_, '_>,
    shards: &Shards,
    name: Option<&str>,
    ranks: u32,
) -> (NewOp, TensorId) {
    let elements = shards.elements * i64::from(ranks);
    let all = memory.own(flat(elements, shards.dtype));
    let within = memory.storage_of(all);
    let own = memory.within(flat(shards.elements, shards.dtype), within);
    let strided = op(
        "aten::as_strided",
        vec![Arg::Tensor(all), ints(&[shards.elements]), ints(&[1]), Arg::Int(0)],
        own,
    );
    let bounds = |last: Vec<i64>| {
        std::iter::once(Arg::Tensor(all)).chain(last.into_iter().map(Arg::Int)).collect::<Vec<_>>()
    };
    let slice = op("aten::slice", bounds(vec![0, 0, shards.elements, 1]), own).with(vec![strided]);
    let narrow = op("aten::narrow", bounds(vec![0, 0, shards.elements]), own).with(vec![slice]);
    let (mut offset, mut places, mut cuts) = (0, Vec::new(), Vec::new());
    for shard in &shards.all {
        let place = memory.within(Tensor { offset, ..flat(shard.elements, shards.dtype) }, within);
        let start = Arg::Int(offset as i64);
        cuts.push(op(
            "aten::as_strided",
            vec![Arg::Tensor(own), ints(&[shard.elements]), ints(&[1]), start],
            place,
        ));
        offset += shard.elements as u64;
        places.push(place);
    }
    let sizes = ints(&shards.all.iter().map(|shard| shard.elements).collect::<Vec<_>>());
    let split = Call {
        inputs: vec![Arg::Tensor(own), sizes.clone(), Arg::Int(0)],
        outputs: vec![Arg::Tensors(places.clone())],
        ..Call::default()
    };
    let parts = || Arg::Tensors(shards.all.iter().map(|shard| shard.sent).collect());
    let copy = Call { inputs: vec![Arg::Tensors(places), parts(), Arg::Bool(false)], ..Call::default() };
    let copy = NewOp::new("aten::_foreach_copy_", copy).on_stream(COPY_IN);
    let count = shards.all.len();
    let copy_in = Call {
        inputs: vec![parts(), Arg::Tensor(all), sizes, Arg::Int(shards.elements), Arg::Int(0)],
        outputs: vec![Arg::Tensor(own), Arg::Tensor(all)],
        ..Call::default()
    };
    let copy_in = NewOp::new("fsdp::all_gather_copy_in", copy_in)
        .with(vec![narrow, NewOp::new("aten::split_with_sizes", split).with(cuts), copy])
        .taking(hooks::COPY_IN.cost(count));
    let gathered =
        NewCollective { kind: CollectiveKind::AllGather, ranks, sent: own, received: all, beside: None };
    let inside = vec![
        op("aten::empty", vec![ints(&[elements])], all),
        copy_in,
        streams_wait(ALL_GATHER, COPY_IN),
        gathered.op().on_stream(ALL_GATHER),
    ];
    let gather = NewOp::around(&function("all_gather", name), inside).taking(hooks::GATHER.cost(count));
    (gather, all)
}

/// The op that splits gathered memory into parameters, which it allocates; `whole` are the tensors of the parameters.
pub(super) fn copy_out(
    memory: &mut Memory<'_, '_>,
    shards: &Shards,
    (all, whole): (TensorId, &[TensorId]),
    (name, ranks): (Option<&str>, u32),
) -> NewOp {
    let ranks = i64::from(ranks);
    let same = memory.storage_of(all);
    let rows = memory.within(Tensor::contiguous(&[ranks, shards.elements], shards.dtype), same);
    let view = |from: TensorId, shape: &[i64], to| op("aten::view", vec![Arg::Tensor(from), ints(shape)], to);
    let mut inside = vec![wait_for(ALL_GATHER), view(all, &[ranks, shards.elements], rows)];
    let (mut made, mut cut) = (Vec::new(), Vec::new());
    for (shard, &whole) in shards.all.iter().zip(whole) {
        let storage = memory.storage_of(whole).or(memory.step.tensors.get(whole).and_then(|row| row.storage));
        let place = memory.value(whole).place;
        let flat = memory.within(Tensor { place, ..flat(ranks * shard.elements, shards.dtype) }, storage);
        let rows = Tensor::contiguous(&[ranks, shard.elements], shards.dtype);
        let shaped = memory.within(Tensor { place, ..rows }, storage);
        inside.push(view(flat, &[ranks, shard.elements], shaped));
        made.push(flat);
        cut.push(shaped);
    }
    let sizes = ints(&shards.all.iter().map(|shard| shard.elements).collect::<Vec<_>>());
    let inputs = vec![Arg::Tensor(rows), sizes, Arg::Int(1), Arg::Tensors(cut)];
    let call = Call { inputs, ..Call::default() };
    let listed = listed(memory, shards.all.len());
    let split = NewOp::new("aten::split_with_sizes_copy", call.clone()).with(listed);
    inside
        .push(NewOp::new("fsdp::split_with_sizes_copy", call).with(vec![split]).taking(hooks::SPLIT.cost(0)));
    let call = Call { outputs: made.into_iter().map(Arg::Tensor).collect(), ..Call::default() };
    NewOp::new(&function("all_gather_copy_out", name), call)
        .with(inside)
        .taking(hooks::COPY_OUT.cost(shards.all.len()))
}

/// Makes the script's stream wait for another.
pub(super) fn wait_for(stream: u32) -> NewOp {
    wait(stream)
}

/// Ops that copy metadata to the device for copies over lists: the address of each part.
pub(super) fn listed(memory: &mut Memory<'_, '_>, parameters: usize) -> Vec<NewOp> {
    let count = LISTED_NUMBERS * parameters as i64;
    let host = memory.own(Tensor { device: Device::Pinned, ..flat(count, Dtype::I64) });
    let there = memory.own(flat(count, Dtype::I64));
    let empty = op("aten::empty_strided", vec![ints(&[count]), ints(&[1])], there);
    let copy = op("aten::copy_", vec![Arg::Tensor(there), Arg::Tensor(host), Arg::Bool(true)], there);
    let moved = || vec![Arg::Tensor(host)];
    let copied = op("aten::_to_copy", moved(), there).with(vec![empty, copy]);
    vec![op("aten::empty", vec![ints(&[count])], host), op("aten::to", moved(), there).with(vec![copied])]
}
