//! Which ops make and take each tensor.

use steptime_graph::TiVec;

use crate::ids::{OpId, TensorId};
use crate::step::Step;

/// Producers and consumers of all tensors of a step, as it was when they were looked up.
#[derive(Debug, Clone)]
pub struct Uses {
    producers: TiVec<TensorId, Option<OpId>>,
    /// Where the consumers of each tensor end in the list of all; they begin where those of the one before end.
    ends: TiVec<TensorId, u32>,
    consumers: Vec<OpId>,
}

impl Uses {
    /// Those of a step.
    #[must_use]
    pub fn of(step: &Step) -> Uses {
        let running = step.running();
        let calls = || running.iter().filter_map(|&op| Some((op, step.ops[op].call.as_deref()?)));
        let mut producers: TiVec<TensorId, Option<OpId>> = vec![None; step.tensors.len()].into();
        let mut ends: TiVec<TensorId, u32> = vec![0; step.tensors.len()].into();
        for (op, call) in calls() {
            call.takes().for_each(|tensor| ends[tensor] += 1);
            for tensor in call.gives() {
                // What is inside an op makes what the op gives; the innermost comes last.
                let passed_on = call.takes().any(|taken| taken == tensor);
                if !passed_on {
                    producers[tensor] = Some(op);
                }
            }
        }
        // First where the consumers of each begin; filled up, where they end.
        let mut all = 0;
        for end in &mut ends {
            let count = std::mem::replace(end, all);
            all += count;
        }
        let mut consumers = vec![OpId(0); all as usize];
        for (op, call) in calls() {
            for tensor in call.takes() {
                consumers[ends[tensor] as usize] = op;
                ends[tensor] += 1;
            }
        }
        Uses { producers, ends, consumers }
    }

    /// The innermost op that makes a tensor; `None` where it is older than the step.
    #[must_use]
    pub fn producer(&self, tensor: TensorId) -> Option<OpId> {
        self.producers[tensor]
    }

    /// The ops that take a tensor, those inside others too.
    #[must_use]
    pub fn consumers(&self, tensor: TensorId) -> &[OpId] {
        let begin = usize::from(tensor).checked_sub(1).map_or(0, |before| self.ends[TensorId::from(before)]);
        &self.consumers[begin as usize..self.ends[tensor] as usize]
    }
}
