//! The forward pass as a list of units with their dependencies, and the functions of the backward pass.

use rustc_hash::FxHashMap;
use steptime_aten::{Lowering, OpSet, kernel::Kernel};
use steptime_graph::execution::StorageId;
use steptime_step::{OpId, StepIr, TensorId};

use crate::passes::{Passes, takes};

/// Weight of a launch, in bytes: about the bytes that a GPU moves in the time of its shortest kernel.
pub(super) const LAUNCH: f64 = 4e6;
/// Arithmetic that takes about as long as moving a byte, for kernels limited by both.
const FLOPS_A_BYTE: f64 = 16.0;

/// Outermost ops.
pub(super) struct Units<'s> {
    pub step: &'s StepIr,
    pub passes: Passes,
    /// For each unit of the forward pass, the places of the units that it depends on.
    pub needs: Vec<Vec<usize>>,
    /// Duration of each unit, estimated from its bytes and arithmetic, in bytes. `None` for a unit that must stay: a copy to or from the host.
    pub weights: Vec<Option<f64>>,
}

impl<'s> Units<'s> {
    pub fn find(step: &'s StepIr, ops: &OpSet) -> Units<'s> {
        let passes = Passes::find(step);
        let forward = &passes.forward;
        let mut known = LastWriters::default();
        let needs = forward.iter().enumerate().map(|(at, &op)| known.needs(step, op, at)).collect();
        let weights = forward.iter().map(|&op| weight(step, op, ops)).collect();
        Units { step, needs, weights, passes }
    }

    /// Moves ops without consumers to the stream of the preceding op: a batch norm counts its batches right where it runs.
    pub fn follow(&self, streams: &mut [u32]) {
        let mut taken = vec![false; self.passes.forward.len()];
        self.needs.iter().flatten().for_each(|&need| taken[need] = true);
        for at in 1..self.passes.forward.len() {
            let before = streams[at - 1];
            let own = self.needs[at].iter().all(|&need| streams[need] == before);
            if streams[at] == 0 && own && !taken[at] && self.weights[at].is_some() {
                streams[at] = before;
            }
        }
    }
}

/// For each tensor, the last unit that made it or wrote to its memory.
#[derive(Default)]
struct LastWriters {
    made: FxHashMap<TensorId, usize>,
    written: FxHashMap<StorageId, usize>,
}

impl LastWriters {
    /// Earlier units that a unit depends on; records its outputs.
    fn needs(&mut self, step: &StepIr, unit: OpId, at: usize) -> Vec<usize> {
        let mut needs = Vec::new();
        for tensor in takes(step, unit) {
            let storage = step.tensors[tensor].storage;
            needs.extend(self.made.get(&tensor));
            needs.extend(storage.and_then(|storage| self.written.get(&storage)));
        }
        for op in step.subtree(unit) {
            let Some(call) = &step.ops[op].call else { continue };
            for tensor in call.gives() {
                self.made.insert(tensor, at);
                let passed_on = call.takes().any(|taken| taken == tensor);
                if let (true, Some(storage)) = (passed_on, step.tensors[tensor].storage) {
                    self.written.insert(storage, at);
                }
            }
        }
        needs.retain(|&need| need < at);
        needs.sort_unstable();
        needs.dedup();
        needs
    }
}

/// Estimated duration of a unit; `None` where it copies between host and device.
fn weight(step: &StepIr, unit: OpId, ops: &OpSet) -> Option<f64> {
    let mut weight = 0.0;
    for op in step.subtree(unit) {
        let Some(lowered) = step.lower(op, ops) else { continue };
        let kernel = match &*lowered {
            Lowering::Kernel(kernel) => kernel,
            Lowering::Unknown(kernel) if step.ops[op].children.is_empty() => kernel,
            _ => continue,
        };
        if matches!(kernel.kernel, Kernel::Transfer(_)) {
            return None;
        }
        let work = (kernel.footprint() as f64).max(kernel.flops as f64 / FLOPS_A_BYTE);
        weight += LAUNCH * f64::from(kernel.launches) + work;
    }
    Some(weight)
}
