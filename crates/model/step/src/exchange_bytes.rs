//! Bytes of exchanges whose tensors rules change.

use steptime_aten::Arg;

use crate::ids::OpId;
use crate::step::StepIr;

/// Factor on the bytes of a recorded exchange since `before`, by the tensors of its op; `None` where these are not known.
pub(crate) fn change_of_bytes(step: &StepIr, before: &StepIr, op: OpId) -> Option<f64> {
    let asks = step.around(op).find(|&op| step.ops[op].arguments().is_some())?;
    let recorded = step.recorded(asks)?;
    let bytes = |of: &StepIr, op: OpId| -> Option<u64> {
        let call = of.call(op)?;
        Some(call.inputs.iter().flat_map(Arg::tensors).map(steptime_aten::Tensor::bytes).sum())
    };
    let [was, now] = [bytes(before, OpId::from_recorded(recorded))?, bytes(step, asks)?];
    (was > 0).then(|| now as f64 / was as f64)
}
