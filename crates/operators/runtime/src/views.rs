//! Aliases: copies of inputs to the device, which a CPU does not need.

use steptime_eager::Role;
use steptime_step::{Call, OpId, TensorId};

use crate::places::Places;

/// Makes each copy of an input to the device the input itself, before any op runs: a rule may place the copy after its uses.
pub(crate) fn copies_of_inputs(places: &mut Places<'_>, order: &[OpId]) {
    let step = &places.described.step;
    for &op in order {
        let row = &step.ops[op];
        let Some((from, to)) = row.call.as_deref().and_then(|call| copied(&row.name, call)) else { continue };
        let is_input = matches!(places.described.named(from), Some((_, Role::Input)));
        let [source, target] = [from, to].map(|tensor| &step.tensors[tensor].value);
        if is_input && source.dtype == target.dtype && source.shape == target.shape {
            places.alias(to, from, 0);
        }
    }
}

/// Source and target of a copy.
fn copied(name: &str, call: &Call) -> Option<(TensorId, TensorId)> {
    let first = |args: &[steptime_aten::Arg<TensorId>], at: usize| args.get(at)?.tensors().first().copied();
    match name {
        "aten::to" | "aten::_to_copy" => Some((first(&call.inputs, 0)?, first(&call.outputs, 0)?)),
        "aten::copy_" => Some((first(&call.inputs, 1)?, first(&call.inputs, 0)?)),
        _ => None,
    }
}
