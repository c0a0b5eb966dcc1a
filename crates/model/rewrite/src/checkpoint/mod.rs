//! Recomputation of activations in the backward pass, as by `torch.utils.checkpoint`.

mod blocks;
mod forward;
mod hooks;
mod modules;
mod prefix_hashes;
mod recompute;
mod repeats;
mod row;

use std::ops::Range;

use steptime_step::{Patch, StepIr};

use self::forward::Forward;
use self::recompute::Recompute;
use crate::blocks::Blocks;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Does not keep the activations of blocks: those of a segment are recomputed right before its gradients.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    /// Number of segments per row of blocks; `None`: one per block.
    pub segments: Option<usize>,
    /// The blocks.
    pub blocks: Blocks,
}

/// The repeated blocks of the forward pass in order, each as the range of its ops.
pub(crate) fn repeated(step: &StepIr) -> Vec<Range<usize>> {
    blocks::repeated(&Forward::new(step)).into_iter().flatten().collect()
}

impl Rule for Checkpoint {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn stage(&self) -> Stage {
        Stage::Recomputation
    }

    fn effort(&self) -> &'static str {
        "small: torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) for each segment"
    }

    fn risk(&self) -> &'static str {
        "blocks must compute the same values twice: random state is restored, other state is not"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Some((
            "checkpointing calls Python for every tensor that a function saves: the cost was measured on one host; a host-bound step may be longer",
            0.15,
        ))
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let forward = Forward::new(step);
        let rows = blocks::find(&forward, &self.blocks, facts)?;
        let mut recompute = Recompute::new(&forward, self.name());
        let mut done = 0;
        for row in &rows {
            for segment in row::segments(row, self.segments) {
                done += usize::from(recompute.segment(segment));
            }
        }
        let blocks: usize = rows.iter().map(Vec::len).sum();
        if done == 0 {
            return Err(Error::NothingToDo { reason: reason(&forward, blocks) });
        }
        let (ops, bytes) = (recompute.ops, recompute.bytes);
        let mut patch = recompute.done();
        patch.why = format!(
            "{blocks} blocks in {done} segments: {ops} ops run again in the backward pass, {:.0} MB of activations are not kept",
            bytes as f64 / 1e6
        );
        Ok(vec![patch])
    }
}

/// Reason why there is nothing to recompute.
fn reason(forward: &Forward<'_>, blocks: usize) -> String {
    if forward.functions.is_empty() {
        "the step has no backward pass".to_owned()
    } else if forward.made.is_empty() {
        "the identity of tensors is not known: record an execution trace".to_owned()
    } else if blocks == 0 {
        format!(
            "the {} ops of the forward pass contain no chain of equal blocks: name the modules to recompute, as --blocks \
             module:Net.down.*,module:Net.up.*",
            forward.roots.len()
        )
    } else {
        format!("the backward pass uses no tensor from inside the {blocks} blocks")
    }
}
