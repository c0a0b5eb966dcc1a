//! Arguments of the ops that stay, with the sizes of all bags.

use rustc_hash::FxHashMap;
use steptime_aten::Arg;
use steptime_step::{Call, OpId, StepIr, TensorId};

use super::merged_sizes::Grow;

/// The call of the first op in a row with the merged sizes and the replaced tensors; `None` where it does not change.
pub(super) fn call(
    step: &StepIr,
    row: &[OpId],
    grow: &Grow,
    one: &FxHashMap<TensorId, TensorId>,
) -> Option<Call> {
    let calls: Vec<&Call> = row.iter().map(|&op| step.ops[op].call.as_deref()).collect::<Option<_>>()?;
    let first = *calls.first()?;
    let name = &step.ops[*row.first()?].name;
    // Integers of other ops are dimensions, types and flags.
    let counted = name.contains("embedding") || name.contains("nnz");
    let sized = |each: &[&[Arg<TensorId>]]| -> Vec<Arg<TensorId>> {
        let arg = |(at, arg): (usize, &Arg<TensorId>)| {
            let grown = ints(each, at).and_then(|each| grow.sizes(&each));
            match (arg, grown.as_deref()) {
                (Arg::Ints(_), Some(grown)) => Arg::Ints(grown.iter().copied().collect()),
                (Arg::Int(_), Some(&[number])) if counted => Arg::Int(number),
                _ => arg.map(|tensor| *one.get(tensor).unwrap_or(tensor)),
            }
        };
        each.first().map(|args| args.iter().enumerate().map(arg).collect()).unwrap_or_default()
    };
    let inputs: Vec<&[Arg<TensorId>]> = calls.iter().map(|call| &call.inputs[..]).collect();
    let outputs: Vec<&[Arg<TensorId>]> = calls.iter().map(|call| &call.outputs[..]).collect();
    let call = Call { inputs: sized(&inputs), outputs: sized(&outputs), settings: first.settings };
    (call != *first).then_some(call)
}

/// The integer lists at an argument position in each of several calls.
fn ints<'c>(each: &[&'c [Arg<TensorId>]], at: usize) -> Option<Vec<&'c [i64]>> {
    let list = |args: &&'c [Arg<TensorId>]| match args.get(at)? {
        Arg::Ints(list) => Some(&list[..]),
        Arg::Int(one) => Some(std::slice::from_ref(one)),
        _ => None,
    };
    each.iter().map(list).collect()
}
