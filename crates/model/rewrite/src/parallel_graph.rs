//! Nodes of the CUDA graph ordered by their data.

use std::sync::Arc;

use steptime_step::{NodeOrder, Patch, StepIr};

use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Orders the nodes of the CUDA graph by the bytes that they read and write. Independent nodes share the GPU.
#[derive(Debug, Clone, Default)]
pub struct ParallelGraph {
    /// Places of tensors in shared memory, where they are planned.
    pub order: NodeOrder,
}

impl Rule for ParallelGraph {
    fn name(&self) -> &'static str {
        "parallel-graph"
    }

    fn stage(&self) -> Stage {
        Stage::Nodes
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, large: the edges of the captured graph by hand, or streams for all branches"
    }

    fn risk(&self) -> &'static str {
        "a missing edge gives wrong numbers; tensors that share memory must not be used at once"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let running = step.running();
        let nothing = |reason: &str| Err(Error::NothingToDo { reason: reason.to_owned() });
        if !running.iter().any(|&op| step.ops[op].captured) {
            return nothing("no op is captured: the rule orders the nodes of a CUDA graph");
        }
        if running.iter().any(|&op| step.ops[op].stream > 0) {
            return nothing("branches have streams of their own already");
        }
        if step.tensors.iter().all(|tensor| tensor.storage.is_none()) {
            return nothing("the identity of tensors is not known: record an execution trace");
        }
        let mut patch = Patch::new(self.name());
        patch.nodes = Some(Arc::new(self.order.clone()));
        patch.why =
            "nodes of the CUDA graph wait for those that use the same bytes, and run beside all others"
                .to_owned();
        Ok(vec![patch])
    }
}
