//! Casts between 32 and 16 bits in a step.

use steptime_aten::{Device, Dtype};
use steptime_step::{OpId, StepIr, TensorId};

use super::tensor;

/// An op that converts a tensor of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cast {
    pub op: OpId,
    pub from: TensorId,
    pub to: TensorId,
}

impl Cast {
    /// The cast that an op is; `None` of other ops.
    pub fn from_op(step: &StepIr, op: OpId) -> Option<Cast> {
        let row = &step.ops[op];
        let call = row.call.as_deref().filter(|_| matches!(&*row.name, "aten::to" | "aten::_to_copy"))?;
        let (from, to) = (tensor(&call.inputs, 0)?, tensor(&call.outputs, 0)?);
        let [one, other] = [dtype(step, from)?, dtype(step, to)?];
        (from != to && one != other).then_some(Cast { op, from, to })
    }

    /// The op to remove with the cast: its function of the backward pass, where that has no other op.
    pub fn outermost(&self, step: &StepIr) -> OpId {
        let alone = |&op: &OpId| step.ops[op].children.len() == 1 && !step.ops[op].annotation;
        step.around(self.op).skip(1).take_while(alone).last().unwrap_or(self.op)
    }
}

/// All casts between f32 and bf16 in order; of nested ones the outermost.
pub(super) fn find(step: &StepIr) -> Vec<Cast> {
    let mut casts: Vec<Cast> = Vec::new();
    for op in step.running() {
        let is_inside = casts.last().is_some_and(|last| step.is_within(op, last.op));
        if !is_inside {
            casts.extend(Cast::from_op(step, op));
        }
    }
    casts
}

/// The type of a tensor of the device, where a cast can change it.
pub(super) fn dtype(step: &StepIr, tensor: TensorId) -> Option<Dtype> {
    let value = &step.tensors.get(tensor)?.value;
    let fits = value.device == Device::Cuda && matches!(value.dtype, Dtype::F32 | Dtype::Bf16);
    fits.then_some(value.dtype)
}
