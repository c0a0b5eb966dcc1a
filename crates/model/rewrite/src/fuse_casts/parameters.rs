//! Casts of parameters as one op over lists.

use steptime_aten::Arg;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId, Uses};

use super::cast::Cast;
use crate::new_ops::{ints, op};

/// Replaces the casts of tensors that are older than the step by one op at the first of them. Returns the number of these casts.
pub(super) fn listed(step: &StepIr, casts: &[Cast], patch: &mut Patch) -> usize {
    let uses = Uses::find(step);
    // Only the optimizer writes to parameters, at the end.
    let is_parameter = |tensor: TensorId| {
        let writes = |op: OpId| {
            let call = step.ops[op].call.as_deref();
            call.is_some_and(|call| call.gives().any(|to| to == tensor))
                && !step.is_in(op, |event| event.is_optimizer_step())
        };
        uses.producer(tensor).is_none() && !uses.consumers(tensor).iter().any(|&op| writes(op))
    };
    let thread = casts.first().map(|cast| step.ops[cast.op].thread);
    let of_parameters: Vec<Cast> = casts
        .iter()
        .filter(|cast| Some(step.ops[cast.op].thread) == thread && is_parameter(cast.from))
        .copied()
        .collect();
    let [first, _, ..] = of_parameters[..] else { return 0 };
    let place = Place::Before(first.outermost(step));
    for cast in &of_parameters {
        let value = &step.tensors[cast.to].value;
        let inputs = vec![ints(&value.shape), ints(&value.strides)];
        patch.insert.push((place, op("aten::empty_strided", inputs, cast.to)));
        patch.remove.push(cast.outermost(step));
    }
    let list = |tensor: fn(&Cast) -> TensorId| Arg::Tensors(of_parameters.iter().map(tensor).collect());
    let inputs = vec![list(|cast| cast.to), list(|cast| cast.from), Arg::Bool(false)];
    patch.insert.push((place, NewOp::new("aten::_foreach_copy_", Call { inputs, ..Call::default() })));
    of_parameters.len()
}
