//! Exchanges of vectors in 16 bits, where the vectors are converted to 16 bits on arrival.

use rustc_hash::FxHashSet;
use steptime_aten::Dtype;
use steptime_graph::execution::StorageId;
use steptime_step::{StepIr, TensorId, Uses};

use crate::described::DescribedStep;
use crate::ops::WITHOUT_WORK;
use crate::table;

/// The op that sends vectors to other ranks.
const SENDS: &str = "c10d::alltoall_base_";
/// The op that looks up and pools vectors, and writes them in any type.
const LOOKS_UP: &str = "steptime::embedding_bag";

impl DescribedStep {
    /// Sends looked-up vectors in 16 bits where all their readers take them so: the same numbers, in half the bytes. Returns whether it does: all ranks
    /// of a job have to.
    pub fn narrow_exchanges(&mut self) -> bool {
        let step = &self.step;
        let uses = Uses::find(step);
        let mut narrow: FxHashSet<StorageId> = FxHashSet::default();
        for op in step.running().into_iter().filter(|&op| step.ops[op].name == SENDS) {
            let Some(call) = step.ops[op].call.as_deref() else { continue };
            let tensors: Vec<TensorId> =
                call.inputs.iter().take(2).flat_map(|arg| arg.tensors()).copied().collect();
            let &[to, from] = &tensors[..] else { continue };
            let Some(came) = step.tensors[to].storage else { continue };
            let sent = step.tensors[from].storage.unwrap_or(came);
            // A rank without tables sends nothing.
            let is_empty = step.tensors[from].value.numel() == 0;
            if self.is_converted(&uses, came) && (is_empty || self.is_looked_up(&uses, sent)) {
                narrow.extend([came].into_iter().chain((!is_empty).then_some(sent)));
            }
        }
        let changes = !narrow.is_empty();
        for tensor in self.step.tensors.iter_mut() {
            if tensor.storage.is_some_and(|storage| narrow.contains(&storage)) {
                tensor.value.dtype = Dtype::Bf16;
            }
        }
        changes
    }

    /// Tensors in a storage, if all of them have 32 bits and no name.
    fn tensors_in(&self, storage: StorageId) -> Option<Vec<TensorId>> {
        let tensors = &self.step.tensors;
        let all: Vec<TensorId> =
            tensors.keys().filter(|&tensor| tensors[tensor].storage == Some(storage)).collect();
        let fits =
            |&tensor: &TensorId| self.named(tensor).is_none() && tensors[tensor].value.dtype == Dtype::F32;
        all.iter().all(fits).then_some(all)
    }

    /// Whether a lookup alone writes a storage, and an exchange alone reads it.
    fn is_looked_up(&self, uses: &Uses, storage: StorageId) -> bool {
        let step = &self.step;
        let Some(all) = self.tensors_in(storage) else { return false };
        let mut lookups = 0;
        // Rules leave tensors that no op uses.
        let is_used =
            |tensor: &&TensorId| uses.producer(**tensor).is_some() || !uses.consumers(**tensor).is_empty();
        let fits = all.iter().filter(is_used).all(|&tensor| {
            let Some(writer) = uses.producer(tensor) else { return false };
            let is_pooled = step.around(writer).any(|op| step.ops[op].name == LOOKS_UP);
            lookups += usize::from(is_pooled);
            let reads = |name: &str| name == SENDS || is_idle(name);
            (is_pooled || is_idle(&step.ops[writer].name))
                && readers(step, uses, tensor).into_iter().all(reads)
        });
        fits && lookups == 1
    }

    /// Whether all readers of a storage convert its elements to 16 bits.
    fn is_converted(&self, uses: &Uses, storage: StorageId) -> bool {
        let step = &self.step;
        let Some(all) = self.tensors_in(storage) else { return false };
        let narrows = |name: &str, op: steptime_step::OpId| {
            let gives = step.ops[op].call.as_deref().and_then(|call| call.gives().next());
            let is_narrow = gives.is_some_and(|given| step.tensors[given].value.dtype == Dtype::Bf16);
            matches!(name, "aten::cat" | "aten::_to_copy" | "aten::to") && is_narrow
        };
        all.iter().all(|&tensor| {
            uses.consumers(tensor).iter().all(|&op| {
                let name = &*step.ops[op].name;
                let around = step.around(op).any(|around| narrows(&step.ops[around].name, around));
                name == SENDS || is_idle(name) || around
            })
        })
    }
}

/// Names of the ops that read a tensor.
fn readers<'s>(step: &'s StepIr, uses: &Uses, tensor: TensorId) -> Vec<&'s str> {
    uses.consumers(tensor).iter().map(|&op| &*step.ops[op].name).collect()
}

/// Whether an op only makes views or notes.
fn is_idle(name: &str) -> bool {
    WITHOUT_WORK.contains(&name) && !matches!(name, "aten::to" | "aten::_to_copy")
        || table::find(name).is_none()
}
