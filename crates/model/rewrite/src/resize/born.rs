//! Tensors that are made of nothing, or of one number: their shape is that of something around them.

use steptime_step::{OpId, Step, TensorId};

/// Ops that make a tensor of nothing.
const BORN: [&str; 12] = [
    "aten::empty",
    "aten::empty_strided",
    "aten::zeros",
    "aten::ones",
    "aten::full",
    "aten::new_zeros",
    "aten::new_empty",
    "aten::new_ones",
    "aten::new_full",
    "aten::arange",
    "aten::rand",
    "aten::randn",
];
/// Ops that spread one number over a shape.
const SPREAD: [&str; 2] = ["aten::expand", "aten::as_strided"];
/// So many ops around are looked at.
const AROUND: usize = 3;

/// Tensors that were made of nothing, each with those of the same shape that the ops around it take or give.
pub(super) fn of(step: &Step) -> Vec<(TensorId, Vec<TensorId>)> {
    let mut all = Vec::new();
    for op in step.running() {
        let row = &step.ops[op];
        let Some(call) = &row.call else { continue };
        let of_one = || call.takes().all(|tensor| step.tensors[tensor].value.distinct_bytes() <= 8);
        if !(BORN.contains(&&*row.name) || (SPREAD.contains(&&*row.name) && of_one())) {
            continue;
        }
        for made in call.gives() {
            let like = alike(step, op, made);
            if !like.is_empty() {
                all.push((made, like));
            }
        }
    }
    all
}

fn alike(step: &Step, op: OpId, made: TensorId) -> Vec<TensorId> {
    let around = step.around(op).skip(1).take(AROUND);
    let tensors = around
        .filter_map(|op| step.ops[op].call.as_deref())
        .flat_map(|call| call.takes().chain(call.gives()));
    let shape = &step.tensors[made].value.shape;
    tensors.filter(|&other| other != made && step.tensors[other].value.shape == *shape).collect()
}
