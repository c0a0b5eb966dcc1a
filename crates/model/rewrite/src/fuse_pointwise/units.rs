//! The step as a sequence of units: outermost ops of the script, functions of the autograd engine.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Lowering;
use steptime_aten::kernel::{Kernel, Work};
use steptime_step::{OpId, StepIr, TensorId};

use crate::passes::Passes;
use crate::repeated_tensors::calls;
use crate::rule::Facts;
use crate::selection::Among;

/// Device work of an outermost op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceWork {
    /// A number of elementwise kernels over `numel` elements each.
    Elementwise { kernels: usize, numel: u64 },
    /// No device work.
    Nothing,
    /// Anything else.
    Other,
}

/// An outermost op.
pub(super) struct Unit {
    pub op: OpId,
    pub does: DeviceWork,
    /// Input tensors from outside, and output tensors.
    pub takes: Vec<TensorId>,
    pub gives: Vec<TensorId>,
    sequences: Vec<i64>,
}

/// All units of a step.
pub(super) struct Units {
    pub forward: Vec<Unit>,
    pub backward: Vec<Unit>,
    pub takers: Takers,
}

/// The places of the units that take each tensor, in order: in the forward and in the backward pass.
pub(super) struct Takers([FxHashMap<TensorId, Vec<usize>>; 2]);

impl Takers {
    fn find(passes: [&[Unit]; 2]) -> Takers {
        Takers(passes.map(|units| {
            let mut takers: FxHashMap<TensorId, Vec<usize>> = FxHashMap::default();
            for (at, unit) in units.iter().enumerate() {
                unit.takes.iter().for_each(|&tensor| takers.entry(tensor).or_default().push(at));
            }
            takers
        }))
    }

    /// Units of the forward pass that take a tensor, from a place on.
    pub fn forward(&self, tensor: TensorId, from: usize) -> impl Iterator<Item = usize> {
        self.from(0, tensor, from)
    }

    /// Units of the backward pass that take a tensor, from a place on.
    pub fn backward(&self, tensor: TensorId, from: usize) -> impl Iterator<Item = usize> {
        self.from(1, tensor, from)
    }

    fn from(&self, pass: usize, tensor: TensorId, from: usize) -> impl Iterator<Item = usize> {
        let all = self.0[pass].get(&tensor).map_or(&[][..], Vec::as_slice);
        all[all.partition_point(|&at| at < from)..].iter().copied()
    }
}

impl Units {
    /// The units of a step. Ops of the forward pass that are not in `among` are never part of a chain.
    pub fn find(step: &StepIr, facts: &Facts<'_>, among: &Among) -> Units {
        let passes = Passes::find(step);
        let unit = |op: OpId| Unit::new(step, op, facts);
        let forward = passes.forward.into_iter().map(|op| match among.has(step, op) {
            true => unit(op),
            false => Unit { does: DeviceWork::Other, ..unit(op) },
        });
        let (forward, backward): (Vec<Unit>, Vec<Unit>) =
            (forward.collect(), passes.backward.into_iter().map(unit).collect());
        let takers = Takers::find([&forward, &backward]);
        Units { forward, backward, takers }
    }

    /// For each chain of units of the forward pass, the places of the functions that compute its gradients.
    pub fn functions_of(&self, chains: &[Vec<usize>]) -> Vec<Vec<usize>> {
        // Of ops with the same sequence number, the last one has the gradient.
        let mut owner: FxHashMap<i64, usize> = FxHashMap::default();
        for (at, unit) in self.forward.iter().enumerate() {
            owner.extend(unit.sequences.iter().map(|&sequence| (sequence, at)));
        }
        let mut chain_of: Vec<Option<usize>> = vec![None; self.forward.len()];
        for (chain, members) in chains.iter().enumerate() {
            members.iter().for_each(|&at| chain_of[at] = Some(chain));
        }
        let mut functions = vec![Vec::new(); chains.len()];
        for (at, unit) in self.backward.iter().enumerate() {
            let owners = unit.sequences.iter().filter_map(|sequence| owner.get(sequence));
            for chain in owners.filter_map(|&owner| chain_of[owner]) {
                if functions[chain].last() != Some(&at) {
                    functions[chain].push(at);
                }
            }
        }
        functions
    }
}

impl Unit {
    fn new(step: &StepIr, op: OpId, facts: &Facts<'_>) -> Unit {
        let (mut takes, mut gives) = (Vec::new(), Vec::new());
        let mut made: FxHashSet<TensorId> = FxHashSet::default();
        for call in calls(step, op) {
            takes.extend(call.takes().filter(|tensor| !made.contains(tensor)));
            made.extend(call.gives());
            gives.extend(call.gives());
        }
        // An op that only takes the shape of a tensor does not depend on its data: it could run earlier.
        if reads_nothing(step, op, facts) {
            takes.retain(|tensor| gives.contains(tensor));
        }
        let sequences = step.subtree(op).into_iter().filter_map(|op| step.ops[op].sequence).collect();
        Unit { op, does: device_work(step, op, facts), takes, gives, sequences }
    }
}

/// Whether kernels of an op write, and none reads.
fn reads_nothing(step: &StepIr, op: OpId, facts: &Facts<'_>) -> bool {
    let mut all = step.subtree(op).into_iter().filter_map(|op| step.lower(op, facts.ops));
    let mut writes = false;
    let none = all.all(|lowered| match &*lowered {
        Lowering::Kernel(call) => {
            writes = true;
            call.bytes_read() == 0
        }
        Lowering::Unknown(_) => false,
        _ => true,
    });
    none && writes
}

fn device_work(step: &StepIr, op: OpId, facts: &Facts<'_>) -> DeviceWork {
    let mut all = DeviceWork::Nothing;
    for op in step.subtree(op) {
        let Some(lowered) = step.lower(op, facts.ops) else { continue };
        let kernel = match &*lowered {
            Lowering::Kernel(kernel) => &kernel.kernel,
            Lowering::Unknown(_) if facts.ops.find(&step.ops[op].name).is_some() => return DeviceWork::Other,
            _ => continue,
        };
        let Kernel::Elementwise(kernel) = kernel else { return DeviceWork::Other };
        all = match all {
            _ if kernel.work == Work::Random => return DeviceWork::Other,
            DeviceWork::Elementwise { kernels, numel } if numel == kernel.numel => {
                DeviceWork::Elementwise { kernels: kernels + 1, numel }
            }
            DeviceWork::Nothing => DeviceWork::Elementwise { kernels: 1, numel: kernel.numel },
            _ => return DeviceWork::Other,
        };
    }
    all
}
