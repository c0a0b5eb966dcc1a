//! Changes of memory in place.

use steptime_step::{StepIr, TensorId};

/// Whether an op changes the memory of a tensor in place.
pub(crate) fn is_changed(step: &StepIr, tensor: TensorId) -> bool {
    let Some(storage) = step.tensors[tensor].storage else { return false };
    step.running().into_iter().any(|op| {
        let row = &step.ops[op];
        let in_place = row.name.ends_with('_') && !row.name.ends_with("__");
        let Some(call) = row.call.as_deref().filter(|_| in_place) else { return false };
        // A copy only reads its source.
        let count = if &*row.name == "aten::copy_" { 1 } else { usize::MAX };
        call.takes().take(count).any(|taken| step.tensors[taken].storage == Some(storage))
    })
}
