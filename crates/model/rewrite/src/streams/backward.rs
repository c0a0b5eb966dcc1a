//! The streams of the backward pass: the engine runs each function on the stream of the op that it differentiates.

use rustc_hash::FxHashMap;
use steptime_step::{OpId, TensorId};

use super::units::Units;
use crate::passes::{gives, takes};

/// The stream of each backward function, given those of the units of the forward pass.
pub(super) fn streams(units: &Units<'_>, forward: &[u32]) -> Vec<u32> {
    let step = units.step;
    // A function differentiates the last op with its sequence number.
    let mut numbered: FxHashMap<i64, u32> = FxHashMap::default();
    let mut made: FxHashMap<TensorId, u32> = FxHashMap::default();
    for (&unit, &stream) in units.passes.forward.iter().zip(forward) {
        numbered
            .extend(step.subtree(unit).into_iter().filter_map(|op| Some((step.ops[op].sequence?, stream))));
        made.extend(gives(step, unit).into_iter().map(|tensor| (tensor, stream)));
    }
    let of = |function: OpId| {
        let number = step.subtree(function).into_iter().find_map(|op| step.ops[op].sequence);
        let known = number.and_then(|number| numbered.get(&number)).copied();
        let stream = known.unwrap_or_else(|| only_stream(takes(step, function), &made));
        made.extend(gives(step, function).into_iter().map(|tensor| (tensor, stream)));
        stream
    };
    units.passes.backward.iter().copied().map(of).collect()
}

/// The only stream other than 0 that makes an input of a function; 0 where there is none, or several.
fn only_stream(taken: Vec<TensorId>, made: &FxHashMap<TensorId, u32>) -> u32 {
    let mut beside = taken.iter().filter_map(|tensor| made.get(tensor)).copied().filter(|&stream| stream > 0);
    let first = beside.next().unwrap_or(0);
    if beside.all(|stream| stream == first) { first } else { 0 }
}
