//! Which ops make and take each tensor.

use steptime_graph::TiVec;

use crate::ids::{OpId, TensorId};
use crate::step::Step;

/// Producers and consumers of all tensors of a step, as it was when they were looked up.
#[derive(Debug, Clone)]
pub struct Uses {
    producers: TiVec<TensorId, Option<OpId>>,
    consumers: TiVec<TensorId, Vec<OpId>>,
}

impl Uses {
    /// Those of a step.
    #[must_use]
    pub fn of(step: &Step) -> Uses {
        let mut uses = Uses {
            producers: vec![None; step.tensors.len()].into(),
            consumers: vec![Vec::new(); step.tensors.len()].into(),
        };
        for op in step.running() {
            let Some(call) = &step.ops[op].call else { continue };
            for tensor in call.takes() {
                uses.consumers[tensor].push(op);
            }
            for tensor in call.gives() {
                // What is inside an op makes what the op gives; the innermost comes last.
                let passed_on = call.takes().any(|taken| taken == tensor);
                if !passed_on {
                    uses.producers[tensor] = Some(op);
                }
            }
        }
        uses
    }

    /// The innermost op that makes a tensor; `None` where it is older than the step.
    #[must_use]
    pub fn producer(&self, tensor: TensorId) -> Option<OpId> {
        self.producers[tensor]
    }

    /// The ops that take a tensor, those inside others too.
    #[must_use]
    pub fn consumers(&self, tensor: TensorId) -> &[OpId] {
        &self.consumers[tensor]
    }
}
