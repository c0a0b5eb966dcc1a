//! Numbers that are no longer read back from the device in each step.

use std::collections::BTreeMap;

use steptime_aten::Device;
use steptime_graph::names::EventName;
use steptime_step::{OpId, Patch, StepIr, Uses};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// The op that reads a number.
const READ: &str = "aten::_local_scalar_dense";
/// Ops that Python calls only to read a number.
const CALLED: [&str; 3] = ["aten::item", "aten::is_nonzero", READ];
/// Prefix of ops of a gradient scaler, which reads a number to skip a step.
const SCALER: &str = "aten::_amp_";

/// Keeps numbers such as the loss on the device: the host does not wait for the device to read them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSync;

impl Rule for NoSync {
    fn name(&self) -> &'static str {
        "no-sync"
    }

    fn stage(&self) -> Stage {
        Stage::Reads
    }

    fn effort(&self) -> &'static str {
        "small: keep the loss as a tensor, and read it once every N steps"
    }

    fn risk(&self) -> &'static str {
        "the script must still read numbers that its control flow uses"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let uses = Uses::find(step);
        let mut patch = Patch::new(self.name());
        let (mut from, mut kept) = (BTreeMap::<String, usize>::new(), BTreeMap::<&str, usize>::new());
        for op in reads(step) {
            match needs(step, &uses, op) {
                Some(reason) => *kept.entry(reason).or_default() += 1,
                None => {
                    patch.remove.push(step.outermost(op));
                    *from.entry(maker(step, &uses, op)).or_default() += 1;
                }
            }
        }
        let kept: Vec<String> = kept.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        if patch.remove.is_empty() {
            let reason = match kept.is_empty() {
                true => "no op reads a number from the device".to_owned(),
                false => format!("all numbers that {READ} reads are needed: {}", kept.join(", ")),
            };
            return Err(Error::NothingToDo { reason });
        }
        let from: Vec<String> = from.iter().map(|(name, count)| format!("{count} of {name}")).collect();
        let kept = if kept.is_empty() { String::new() } else { format!("; still read: {}", kept.join(", ")) };
        patch.why = format!("{} numbers are not read back: {}{kept}", patch.remove.len(), from.join(", "));
        Ok(vec![patch])
    }
}

/// Ops that read a number from the device.
fn reads(step: &StepIr) -> impl Iterator<Item = OpId> + use<'_> {
    let on_device = |op: OpId| {
        let mut takes = step.ops[op].call.iter().flat_map(|call| call.takes());
        takes.any(|tensor| step.tensors[tensor].value.device == Device::Cuda)
    };
    step.running().into_iter().filter(move |&op| step.ops[op].name == READ && on_device(op))
}

/// Reason why a number must be read, in the plural; `None` where no known op needs it.
fn needs(step: &StepIr, uses: &Uses, op: OpId) -> Option<&'static str> {
    let tensors = || step.ops[op].call.iter().flat_map(|call| call.takes());
    let mut touched = tensors()
        .flat_map(|tensor| uses.producer(tensor).into_iter().chain(uses.consumers(tensor).iter().copied()));
    if !CALLED.contains(&&*step.ops[step.outermost(op)].name) {
        Some("by other ops")
    } else if touched.any(|other| step.ops[other].name.starts_with(SCALER)) {
        Some("by the gradient scaler")
    } else if step.is_in(op, EventName::is_optimizer) {
        Some("by the optimizer")
    } else {
        None
    }
}

/// Name of the op that computes a number.
fn maker(step: &StepIr, uses: &Uses, op: OpId) -> String {
    let tensor = step.ops[op].call.as_deref().and_then(|call| call.takes().next());
    let maker = tensor.and_then(|tensor| uses.producer(tensor));
    maker.map_or_else(
        || "tensors from before the step".to_owned(),
        |maker| step.ops[step.outermost(maker)].name.clone(),
    )
}
