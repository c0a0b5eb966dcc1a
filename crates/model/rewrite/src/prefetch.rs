//! The next batch copied from pinned memory, by a stream of its own, under the step before.

use steptime_aten::{Arg, Device, Lowering, kernel::Direction, kernel::Kernel};
use steptime_step::{Call, NewOp, OpId, Patch, Place, Step, TensorId, Uses};

use crate::error::Error;
use crate::rule::{Facts, Rule};

/// Where `aten::copy_` is told not to wait.
const NON_BLOCKING: usize = 2;

/// Batches in pinned memory; the next one is copied while this one is trained on, and no copy of it makes the host wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrefetchInputs;

impl Rule for PrefetchInputs {
    fn name(&self) -> &'static str {
        "prefetch-inputs"
    }

    fn effort(&self) -> &'static str {
        "small: pin_memory=True in the DataLoader, the next batch copied with non_blocking=True on a second stream"
    }

    fn risk(&self) -> &'static str {
        "a batch must not be written while it is copied; the device holds two"
    }

    fn patches(&self, step: &Step, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let uses = Uses::of(step);
        let mut patch = Patch::new(self.name());
        let (mut bytes, mut asynchronous, mut made) = (0, 0, 0);
        for op in step.running() {
            let Some(copy) = Copy::of(step, op, facts) else { continue };
            if copy.non_blocking {
                asynchronous += 1;
            } else if uses.producer(copy.from).is_some() {
                made += 1;
            } else {
                bytes += copy.bytes;
                copy.ahead(step, &mut patch);
            }
        }
        if patch.ahead.is_empty() {
            return Err(Error::NothingToDo { reason: reason(asynchronous, made) });
        }
        let left = match made {
            0 => String::new(),
            _ => format!("; {made} copies of what the step itself makes on the host stay"),
        };
        patch.why = format!(
            "{} copies from pageable memory, {:.1} MB, become copies from pinned memory on a stream of their own, a step ahead{left}",
            patch.ahead.len(),
            bytes as f64 / 1e6,
        );
        Ok(vec![patch])
    }
}

/// Why no copy can be made ahead.
fn reason(asynchronous: usize, made: usize) -> String {
    match (asynchronous, made) {
        (0, 0) => "no op copies from the host to the device".to_owned(),
        (0, _) => format!("all {made} copies to the device are of what the step itself makes on the host"),
        _ => format!(
            "aten::copy_ does not wait as it is: {asynchronous} copies to the device are non-blocking"
        ),
    }
}

/// A copy from the host to the device.
struct Copy {
    op: OpId,
    from: TensorId,
    to: TensorId,
    bytes: u64,
    non_blocking: bool,
}

impl Copy {
    fn of(step: &Step, op: OpId, facts: &Facts<'_>) -> Option<Copy> {
        let (row, call) = (step.ops[op].call.as_deref()?, step.call(op)?);
        let lowered = step.lower(op, facts.ops)?;
        let Lowering::Kernel(kernel) = &*lowered else { return None };
        let Kernel::Transfer(transfer) = &kernel.kernel else { return None };
        if call.name != "aten::copy_" || transfer.direction != Direction::ToDevice {
            return None;
        }
        let tensor = |at: usize| row.inputs.get(at)?.tensors().first().copied();
        let non_blocking = call.flag_at(NON_BLOCKING) == Some(true);
        Some(Copy { op, to: tensor(0)?, from: tensor(1)?, bytes: transfer.bytes, non_blocking })
    }

    fn ahead(&self, step: &Step, patch: &mut Patch) {
        let Some(mut call) = step.ops[self.op].call.as_deref().cloned() else { return };
        let pinned =
            steptime_aten::Tensor { device: Device::Pinned, ..step.tensors[self.from].value.clone() };
        if !patch.reshape.iter().any(|(tensor, _)| *tensor == self.from) {
            patch.reshape.push((self.from, pinned));
        }
        if let Some(flag) = call.inputs.get_mut(NON_BLOCKING) {
            *flag = Arg::Bool(true);
        }
        patch.change.push((self.op, call));
        patch.ahead.push(self.op);
        // The allocator is told that the main stream uses what the other one made.
        let marked = Call { inputs: vec![Arg::Tensor(self.to)], ..Call::default() };
        let outermost = step.outermost(self.op);
        patch.insert.push((Place::After(outermost), NewOp::new("aten::record_stream", marked)));
    }
}
