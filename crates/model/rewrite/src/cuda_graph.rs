//! Capture of the step as a CUDA graph, apart from ops that cannot be captured.

use std::collections::BTreeMap;

use steptime_aten::{Arg, Device, OpCall, Tensor};
use steptime_step::{OpId, Patch, StepIr};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Ops with data-dependent output shapes: the host waits for them.
const BY_DATA: [&str; 9] = [
    "aten::nonzero",
    "aten::masked_select",
    "aten::unique_consecutive",
    "aten::unique_dim",
    "aten::_unique",
    "aten::_unique2",
    "aten::bincount",
    "aten::_coalesce",
    "aten::repeat_interleave",
];

/// Captures the launches of the step as a CUDA graph, which one call launches. The batch is copied into static memory before; ops that wait for the
/// device stay outside.
#[derive(Debug, Clone, Copy, Default)]
pub struct CudaGraph;

impl Rule for CudaGraph {
    fn name(&self) -> &'static str {
        "cuda-graph"
    }

    fn stage(&self) -> Stage {
        Stage::Capture
    }

    fn effort(&self) -> &'static str {
        "medium: static shapes and inputs, capture after warm-up"
    }

    fn risk(&self) -> &'static str {
        "shapes must not change; random numbers and learning rates need care"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let mut patch = Patch::new(self.name());
        let mut kept: BTreeMap<&'static str, usize> = BTreeMap::new();
        for op in units(step) {
            let inside = step.subtree(op);
            let reason = inside.iter().find_map(|&op| prevents(step.call(op)?));
            match reason {
                None => patch.capture.push(op),
                Some(reason) => {
                    *kept.entry(reason).or_default() += 1;
                    // A copy into static memory allocates nothing.
                    let copies = |&&inner: &&OpId| inner != op && step.ops[inner].name == "aten::copy_";
                    let copy = inside.iter().find(copies);
                    patch
                        .lift
                        .extend(copy.filter(|_| step.ops[op].name == "aten::to").map(|&copy| (copy, op)));
                }
            }
        }
        if patch.capture.is_empty() {
            let reason = "no op can be captured".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        let outside: Vec<String> = kept.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let outside = if outside.is_empty() { "nothing".to_owned() } else { outside.join(", ") };
        patch.why = format!("{} ops in a CUDA graph; outside of it: {outside}", patch.capture.len());
        Ok(vec![patch])
    }
}

/// The outermost ops, including those within annotations.
fn units(step: &StepIr) -> Vec<OpId> {
    let outermost = |&op: &OpId| {
        let row = &step.ops[op];
        !row.annotation && step.outermost(op) == op && !row.captured
    };
    step.running().into_iter().filter(outermost).collect()
}

/// Reason why an op cannot be captured, in the plural; `None` where it can.
fn prevents(call: &OpCall) -> Option<&'static str> {
    let on = |device: Device| {
        let sized = move |tensor: &&Tensor| !tensor.shape.is_empty() && tensor.device == device;
        let all = call.inputs.iter().chain(&call.outputs).flat_map(Arg::tensors);
        all.filter(sized).count() > 0
    };
    let on_device = || call.inputs.iter().flat_map(Arg::tensors).any(|tensor| tensor.device == Device::Cuda);
    match call.name.as_str() {
        "aten::_local_scalar_dense" if on_device() => Some("numbers read back to the host"),
        name if BY_DATA.contains(&name) && on_device() => Some("ops with data-dependent output sizes"),
        _ if on(Device::Cpu) && on(Device::Cuda) => Some("copies between host and device"),
        _ if on(Device::Cpu) || on(Device::Pinned) => Some("ops on the host"),
        _ => None,
    }
}
