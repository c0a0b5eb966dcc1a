//! Copies from the host to the device.

use steptime_aten::kernel::{Kernel, TransferDirection};
use steptime_aten::{Lowering, OpSet};
use steptime_step::{OpId, StepIr, TensorId};

/// Index of the `non_blocking` argument of `aten::copy_`.
pub(crate) const NON_BLOCKING: usize = 2;

/// An op that copies from the host to the device.
pub(crate) struct HostCopy {
    pub op: OpId,
    pub from: TensorId,
    pub to: TensorId,
    pub bytes: u64,
    /// Whether the host does not wait for the copy.
    pub non_blocking: bool,
}

impl HostCopy {
    /// The copy that an op performs; `None` for other ops.
    pub fn find(step: &StepIr, op: OpId, ops: &OpSet) -> Option<HostCopy> {
        let (row, call) = (step.ops[op].call.as_deref()?, step.call(op)?);
        let lowered = step.lower(op, ops)?;
        let Lowering::Kernel(kernel) = &*lowered else { return None };
        let Kernel::Transfer(transfer) = &kernel.kernel else { return None };
        if call.name != "aten::copy_" || transfer.direction != TransferDirection::ToDevice {
            return None;
        }
        let tensor = |at: usize| row.inputs.get(at)?.tensors().first().copied();
        let non_blocking = call.flag_at(NON_BLOCKING) == Some(true);
        Some(HostCopy { op, to: tensor(0)?, from: tensor(1)?, bytes: transfer.bytes, non_blocking })
    }
}
