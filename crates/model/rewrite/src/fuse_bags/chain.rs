//! Ops that run for one bag: copies of its inputs, the lookup, its gradient, its table's update.

use rustc_hash::FxHashSet;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use super::bags::{Bag, one};
use crate::error::Error;
use crate::new_ops::accumulates;

/// The ops of one bag.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    /// Outermost ops that run for this bag, in an order common to all bags.
    pub roots: Vec<OpId>,
    /// Its backward function, where the table is trained.
    pub backward: Option<OpId>,
    /// The gradient of its output.
    pub gradient: Option<TensorId>,
    /// The table, and all tensors computed from its gradient.
    pub tensors: FxHashSet<TensorId>,
}

impl Chain {
    /// The ops of a bag, except those in the optimizer.
    pub fn find(step: &StepIr, uses: &Uses, bag: &Bag) -> Result<Chain, Error> {
        let mut chain = Chain::default();
        chain.tensors.insert(bag.table);
        for &input in &bag.inputs {
            chain.made_of(step, uses, input)?;
        }
        chain.roots.push(bag.op);
        let backward = uses.consumers(bag.bag_of).iter().find(|&&op| {
            let takes_gradient = || gradient(step, op).is_some();
            step.ops[op].name.starts_with("aten::_embedding_bag_backward") && takes_gradient()
        });
        if let Some(&backward) = backward {
            let function = step.outermost(backward);
            chain.backward = Some(function);
            chain.gradient = gradient(step, backward);
            chain.roots.push(function);
            chain.roots.extend(accumulates(step, function));
            for root in chain.roots.iter().skip_while(|&&root| root != function) {
                let calls = step.subtree(*root).into_iter().filter_map(|op| step.ops[op].call.as_deref());
                chain.tensors.extend(calls.flat_map(steptime_step::Call::gives));
            }
        }
        Ok(chain)
    }

    /// Adds the ops that make an input: copies of one tensor, back to one that is older than the step.
    fn made_of(&mut self, step: &StepIr, uses: &Uses, input: TensorId) -> Result<(), Error> {
        let mut found = Vec::new();
        let mut tensor = input;
        while let Some(maker) = uses.producer(tensor) {
            let root = step.outermost(maker);
            let sized = |tensor: &TensorId| !step.tensors[*tensor].value.shape.is_empty();
            let call = step.ops[root].call.as_deref();
            let takes: Vec<TensorId> =
                call.map(|call| call.takes().filter(sized).collect()).unwrap_or_default();
            let again = self.roots.contains(&root) || found.contains(&root);
            match takes[..] {
                _ if again => break,
                [] if call.is_some() => {
                    found.push(root);
                    break;
                }
                [from] if from != tensor => {
                    found.push(root);
                    tensor = from;
                }
                _ => return Err(Error::BagInput { op: step.ops[root].name.clone() }),
            }
        }
        self.roots.extend(found.into_iter().rev());
        Ok(())
    }
}

/// The first gradient that a backward op takes.
fn gradient(step: &StepIr, op: OpId) -> Option<TensorId> {
    step.ops[op].call.as_deref()?.inputs.first().and_then(one)
}
