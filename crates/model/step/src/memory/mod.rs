//! The most device memory that a step's tensors need.
//!
//! Ops are walked in the order in which they run, over all threads. A piece of memory is there from the op that makes it
//! to the end of the last op that takes it, or of the function of the autograd engine which that is in. What is older than
//! the step is always there; gradients are there until they are zeroed; what is copied for the next step is there twice; what
//! the script is known to keep is there until the end of the step, or until the next one has its own.

mod kinds;
mod life;
mod lives;
mod order;
mod over;
mod pieces;
mod sharded;
mod sparse;
mod within;
mod workspace;

pub use self::kinds::Kind;
pub use self::over::{Moment, over};

use self::pieces::Pieces;
use crate::ids::OpId;
use crate::schedule::Scheduled;
use crate::step::Step;

/// For each piece, whether it is copied for the next step: there are two then.
fn copied_ahead(step: &Step, running: &[OpId], pieces: &Pieces) -> Vec<bool> {
    let mut ahead = vec![false; pieces.bytes.len()];
    for row in running.iter().map(|&op| &step.ops[op]).filter(|row| row.ahead) {
        let to = row.call.as_deref().and_then(|call| call.inputs.first()?.tensors().first());
        for piece in to.into_iter().flat_map(|&to| pieces.all(to)) {
            ahead[piece] = true;
        }
    }
    ahead
}

/// The most device memory that is needed at once, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peak {
    bytes: [u64; Kind::ALL.len()],
}

impl Peak {
    /// Of a step. `scheduled` is what runs of it, before any of it is captured; `capability` is the major version of the
    /// GPU's compute capability, where known.
    #[must_use]
    pub fn of(step: &Step, scheduled: &Scheduled, capability: Option<u32>) -> Peak {
        let mut most = Peak::default();
        most.bytes[Kind::Workspace as usize] = workspace::bytes(step, &step.running(), capability);
        for moment in over(step, scheduled, capability) {
            if moment.needs.total() > most.total() {
                most = moment.needs;
            }
        }
        most
    }

    /// All of it, bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }

    /// What is of one kind at that time, bytes.
    #[must_use]
    pub fn of_kind(&self, kind: Kind) -> u64 {
        self.bytes[kind as usize]
    }
}
