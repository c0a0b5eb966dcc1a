//! Copies of the next batch from pinned memory, on a separate stream, during the previous step.

use steptime_aten::{Arg, Device};
use steptime_step::{Call, NewOp, Patch, Place, StepIr, Uses};

use crate::error::Error;
use crate::host_copy::{HostCopy, NON_BLOCKING};
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Batches in pinned memory. The next batch is copied while the current one is trained on, and the host waits for none of its copies.
#[derive(Debug, Clone, Copy, Default)]
pub struct PrefetchInputs;

impl Rule for PrefetchInputs {
    fn name(&self) -> &'static str {
        "prefetch-inputs"
    }

    fn stage(&self) -> Stage {
        Stage::Prefetch
    }

    fn effort(&self) -> &'static str {
        "small: pin_memory=True in the DataLoader, the next batch copied with non_blocking=True on a second stream"
    }

    fn risk(&self) -> &'static str {
        "a batch must not be written while it is copied; the device holds two batches"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let uses = Uses::find(step);
        let mut patch = Patch::new(self.name());
        let (mut bytes, mut asynchronous, mut made) = (0, 0, 0);
        for op in step.running() {
            let Some(copy) = HostCopy::find(step, op, facts.ops) else { continue };
            if copy.non_blocking {
                asynchronous += 1;
            } else if uses.producer(copy.from).is_some() {
                made += 1;
            } else {
                bytes += copy.bytes;
                ahead(&copy, step, &mut patch);
            }
        }
        if patch.ahead.is_empty() {
            return Err(Error::NothingToDo { reason: reason(asynchronous, made) });
        }
        let left = match made {
            0 => String::new(),
            _ => format!("; {made} copies of tensors that the step computes on the host stay"),
        };
        patch.why = format!(
            "{} copies from pageable memory ({:.1} MB) become copies from pinned memory on their own stream, one step ahead{left}",
            patch.ahead.len(),
            bytes as f64 / 1e6,
        );
        Ok(vec![patch])
    }
}

/// Reason why no copy can be moved ahead.
fn reason(asynchronous: usize, made: usize) -> String {
    match (asynchronous, made) {
        (0, 0) => "no op copies from the host to the device".to_owned(),
        (0, _) => {
            format!("all {made} copies to the device are of tensors that the step computes on the host")
        }
        _ => {
            format!("the host does not wait for inputs: {asynchronous} copies to the device are non-blocking")
        }
    }
}

/// Moves a copy ahead, from pinned memory, for the next step.
fn ahead(copy: &HostCopy, step: &StepIr, patch: &mut Patch) {
    let Some(mut call) = step.ops[copy.op].call.as_deref().cloned() else { return };
    let pinned = steptime_aten::Tensor { device: Device::Pinned, ..step.tensors[copy.from].value.clone() };
    if !patch.reshape.iter().any(|(tensor, _)| *tensor == copy.from) {
        patch.reshape.push((copy.from, pinned));
    }
    if let Some(flag) = call.inputs.get_mut(NON_BLOCKING) {
        *flag = Arg::Bool(true);
    }
    patch.change.push((copy.op, call));
    patch.ahead.push(copy.op);
    // The allocator records that the main stream uses memory of the copy stream.
    let marked = Call { inputs: vec![Arg::Tensor(copy.to)], ..Call::default() };
    let outermost = step.outermost(copy.op);
    patch.insert.push((Place::After(outermost), NewOp::new("aten::record_stream", marked)));
}
