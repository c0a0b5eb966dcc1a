//! The patch: one kernel in place of a chain's ops, and one in place of the functions of their gradients.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use steptime_aten::{Arg, Settings};
use steptime_graph::names::EventName;
use steptime_step::{Call, NewOp, Patch, Place, TensorId};

use super::chains::Chain;
use super::units::{DeviceWork, Unit, Units};

/// Name of the kernel.
const KERNEL: &str = "triton_poi_fused";
/// Names of the events around it: around the function of the forward pass, and the function of either pass.
const REGION: &str = "Torch-Compiled Region";
const FUNCTION: [&str; 2] = ["CompiledFunction", "CompiledFunctionBackward"];
/// Host time of a compiled function above that of its kernels, in the forward and in the backward pass, in units of a small op with autograd: between
/// the values of two recordings, 20 and 42, 15 and 29.
const PYTHON: [f64; 2] = [29.0, 21.0];

type Tensors = BTreeSet<TensorId>;

/// The patch under construction, chain by chain.
pub(super) struct ChainPatch<'u> {
    units: &'u Units,
    pub patch: Patch,
    /// Number of fused kernels in the forward and in the backward pass.
    pub kernels: [usize; 2],
}

impl<'u> ChainPatch<'u> {
    pub fn new(units: &'u Units, rule: &'static str) -> ChainPatch<'u> {
        ChainPatch { units, patch: Patch::new(rule), kernels: [0; 2] }
    }

    pub fn chain(&mut self, chain: &Chain) {
        let units = self.units;
        let forward: Vec<&Unit> = chain.forward.iter().map(|&at| &units.forward[at]).collect();
        let backward: Vec<&Unit> = chain.backward.iter().map(|&at| &units.backward[at]).collect();
        // Tensors taken by other ops are written; the gradients take the inputs of the chain and recompute the rest.
        let takers = &units.takers;
        let others = |at: usize, members: &[usize]| members.binary_search(&at).is_err();
        let (takes, gives) = between(&forward, |tensor| {
            takers.forward(tensor, chain.forward[0]).any(|at| others(at, &chain.forward))
                || takers.backward(tensor, 0).any(|at| others(at, &chain.backward))
        });
        self.replace(&forward, call(&takes, &gives), 0);
        if backward.is_empty() {
            return;
        }
        let inner: FxHashSet<TensorId> =
            forward.iter().flat_map(|unit| &unit.gives).copied().filter(|id| !gives.contains(id)).collect();
        let (mut needs, gradients) = between(&backward, |tensor| {
            takers.backward(tensor, chain.backward[0]).any(|at| others(at, &chain.backward))
        });
        if needs.iter().any(|id| inner.contains(id)) {
            needs.retain(|id| !inner.contains(id));
            needs.extend(takes.iter().filter(|id| !needs.contains(id)).copied().collect::<Vec<_>>());
        }
        self.replace(&backward, call(&needs, &gradients), 1);
    }

    /// Inserts one kernel at the position of the last of some ops.
    fn replace(&mut self, members: &[&Unit], call: Call, pass: usize) {
        let Some(last) = members.last() else { return };
        let function = NewOp::around(FUNCTION[pass], vec![NewOp::new(KERNEL, call)]);
        let around = if pass == 0 { REGION.to_owned() } else { EventName::engine(FUNCTION[pass]) };
        let region = NewOp::around(&around, vec![function]).taking(PYTHON[pass]);
        self.patch.insert.push((Place::Before(last.op), region));
        self.patch.remove.extend(members.iter().map(|unit| unit.op));
        let kernels =
            |unit: &&Unit| if let DeviceWork::Elementwise { kernels, .. } = unit.does { kernels } else { 0 };
        self.kernels[pass] += members.iter().map(kernels).sum::<usize>();
    }
}

fn call(takes: &Tensors, gives: &Tensors) -> Call {
    let args = |ids: &Tensors| ids.iter().map(|&id| Arg::Tensor(id)).collect();
    Call { inputs: args(takes), outputs: args(gives), settings: Settings::default() }
}

/// Tensors that some ops take from outside, and their outputs for which `others` holds.
fn between(members: &[&Unit], others: impl Fn(TensorId) -> bool) -> (Tensors, Tensors) {
    let mut made: FxHashSet<TensorId> = FxHashSet::default();
    let mut takes = BTreeSet::new();
    for unit in members {
        takes.extend(unit.takes.iter().filter(|id| !made.contains(id)));
        made.extend(&unit.gives);
    }
    let gives = made.into_iter().filter(|&id| others(id)).collect();
    (takes, gives)
}
