//! What runs for each batch: the forward pass, and the backward pass with it.

use rustc_hash::FxHashSet;
use steptime_graph::HostThreadId;
use steptime_graph::execution::StorageId;
use steptime_step::{OpId, Step, TensorId};

use crate::error::Error;
use crate::names::calls;

/// What names of functions of the autograd engine begin with.
const FUNCTION: &str = "autograd::engine::evaluate_function: ";
/// Around what an optimizer does.
const OPTIMIZER: &str = "Optimizer.";
/// What adds a gradient to the one there is, or keeps it where there is none.
pub(super) const ACCUMULATE: &str = "torch::autograd::AccumulateGrad";

/// The outermost ops of one batch.
pub(super) struct Pass {
    /// Those of the script, up to the end of the backward pass.
    pub script: Vec<OpId>,
    /// Those of the autograd engine's thread; none where it runs on the script's.
    pub engine: Vec<OpId>,
}

impl Pass {
    /// Of a step: what takes a gradient comes after it.
    pub fn of(step: &Step) -> Result<Pass, Error> {
        let (mut main, mut engine) = (Vec::new(), Vec::new());
        for op in step.running() {
            let row = &step.ops[op];
            let is_outermost = !row.annotation && step.outermost(op) == op;
            if row.name == ACCUMULATE
                && row.call.iter().flat_map(|call| call.takes()).any(|id| step.tensors[id].value.is_sparse())
            {
                return Err(Error::SparseAccumulated);
            }
            if is_outermost && row.thread == HostThreadId::MAIN && !is_stepping(step, op) {
                main.push(op);
            } else if is_outermost && row.name.starts_with(FUNCTION) {
                engine.push(op);
            }
        }
        let is_function = |op: &OpId| step.ops[*op].name.starts_with(FUNCTION);
        let end = match main.iter().rposition(is_function) {
            Some(last) => last + 1,
            None if engine.is_empty() => {
                return Err(Error::NothingToDo { reason: "the step has no backward pass".to_owned() });
            }
            None => before_update(step, &main, &engine),
        };
        main.truncate(end);
        Ok(Pass { script: main, engine })
    }

    /// All of it, in order.
    pub fn ops(&self) -> Vec<OpId> {
        self.script.iter().chain(&self.engine).copied().collect()
    }
}

/// How many ops of the script come before any that takes what the engine makes.
fn before_update(step: &Step, main: &[OpId], engine: &[OpId]) -> usize {
    let mut older: FxHashSet<StorageId> = FxHashSet::default();
    let mut made: FxHashSet<TensorId> = FxHashSet::default();
    let mut memory: FxHashSet<StorageId> = FxHashSet::default();
    for call in engine.iter().flat_map(|&op| calls(step, op)) {
        older
            .extend(call.takes().filter_map(|id| step.tensors[id].storage).filter(|at| !memory.contains(at)));
        made.extend(call.gives());
        memory
            .extend(call.gives().filter_map(|id| step.tensors[id].storage).filter(|at| !older.contains(at)));
    }
    // Memory that the script itself makes before is another's by then.
    let mut own: FxHashSet<StorageId> = FxHashSet::default();
    let after = main.iter().position(|&op| {
        let mut takes = calls(step, op).flat_map(|call| call.takes());
        let taken = takes.any(|id| {
            let storage = step.tensors[id].storage;
            made.contains(&id) && storage.is_none_or(|at| memory.contains(&at) && !own.contains(&at))
        });
        own.extend(calls(step, op).flat_map(|call| call.gives()).filter_map(|id| step.tensors[id].storage));
        taken
    });
    after.unwrap_or(main.len())
}

fn is_stepping(step: &Step, op: OpId) -> bool {
    let mut around = std::iter::successors(Some(op), |&op| step.ops[op].parent);
    around.any(|op| step.ops[op].name.starts_with(OPTIMIZER))
}
