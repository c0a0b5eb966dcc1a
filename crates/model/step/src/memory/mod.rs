//! Peak device memory of a step's tensors.
//!
//! Ops are visited in execution order, over all threads. A piece of memory lives from the op that makes it to the end of the last op that takes it,
//! or of the autograd function around that. Memory from before the step lives for the whole step; gradients live until they are zeroed; copies for
//! the next step exist twice; tensors that the script is known to keep live until the end of the step, or until the next step has its own.

mod enclosing_functions;
mod kinds;
mod lifetime;
mod lifetimes;
mod order;
mod over_time;
mod pieces;
mod sharded;
mod sparse;
mod workspace;

pub use self::kinds::Kind;
pub use self::over_time::{Moment, over};

use self::pieces::Pieces;
use crate::ids::OpId;
use crate::schedule::ScheduledStep;
use crate::step::StepIr;

/// For each piece, whether it is copied for the next step and therefore exists twice.
fn copied_ahead(step: &StepIr, running: &[OpId], pieces: &Pieces) -> Vec<bool> {
    let mut ahead = vec![false; pieces.bytes.len()];
    for row in running.iter().map(|&op| &step.ops[op]).filter(|row| row.ahead) {
        let to = row.call.as_deref().and_then(|call| call.inputs.first()?.tensors().first());
        for piece in to.into_iter().flat_map(|&to| pieces.all(to)) {
            ahead[piece] = true;
        }
    }
    ahead
}

/// Peak device memory, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peak {
    bytes: [u64; Kind::ALL.len()],
}

impl Peak {
    /// The peak of a step. `scheduled` is its schedule, before any of it is captured; `capability` is the major version of the GPU's compute
    /// capability, where known.
    #[must_use]
    pub fn find(step: &StepIr, scheduled: &ScheduledStep, capability: Option<u32>) -> Peak {
        let mut most = Peak::default();
        most.bytes[Kind::Workspace as usize] = workspace::bytes(step, &step.running(), capability);
        for moment in over(step, scheduled, capability) {
            if moment.needs.total() > most.total() {
                most = moment.needs;
            }
        }
        most
    }

    /// Total bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }

    /// Bytes of one kind at the peak.
    #[must_use]
    pub fn bytes_of(&self, kind: Kind) -> u64 {
        self.bytes[kind as usize]
    }
}
