//! The most device memory that a step's tensors need.
//!
//! Ops are walked in the order in which they run, over all threads. A piece of memory is there from the op that makes it
//! to the end of the last op that takes it, or of the function of the autograd engine which that is in. What is older than
//! the step is always there; gradients are there until they are zeroed; what is copied for the next step is there twice.

mod kinds;
mod life;
mod lives;
mod order;
mod pieces;
mod within;
mod workspace;

pub use self::kinds::Kind;

use self::order::Order;
use self::pieces::Pieces;
use crate::ids::OpId;
use crate::schedule::Scheduled;
use crate::step::Step;

/// For each piece, whether it is copied for the next step: there are two then.
fn copied_ahead(step: &Step, running: &[OpId], pieces: &Pieces) -> Vec<bool> {
    let mut ahead = vec![false; pieces.bytes.len()];
    for row in running.iter().map(|&op| &step.ops[op]).filter(|row| row.ahead) {
        let to = row.call.as_deref().and_then(|call| call.inputs.first()?.tensors().first());
        if let Some(piece) = to.and_then(|&to| pieces.of[to]) {
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
        let order = Order::of(step, scheduled);
        let pieces = Pieces::of(step);
        let running = step.running();
        let within = within::of(step, &running);
        let lives = lives::of(step, &order, (&running, &within), &pieces);
        let kinds = kinds::of(step, &order, &within, &pieces, &lives);
        let ahead = copied_ahead(step, &running, &pieces);
        let zeroed = lives::zeroed(step, &order);
        // What comes and goes, at each begin and end.
        let mut events: Vec<(usize, bool, usize)> = Vec::new();
        for (piece, life) in lives.iter().enumerate() {
            let Some(life) = life else { continue };
            let mut lives_in = |from: usize, until: usize| {
                events.extend([(from, true, piece), (until, false, piece)]);
            };
            match (life.made, kinds[piece]) {
                (None, _) => lives_in(0, usize::MAX),
                (Some(made), _) if ahead[piece] => {
                    lives_in(0, life.last);
                    lives_in(made, usize::MAX);
                }
                (Some(made), Kind::Gradients) => match zeroed {
                    Some(zeroed) if zeroed > made => lives_in(made, zeroed),
                    Some(zeroed) => {
                        lives_in(0, zeroed);
                        lives_in(made, usize::MAX);
                    }
                    None => lives_in(made, usize::MAX),
                },
                (Some(made), _) => lives_in(made, life.last),
            }
        }
        // What goes at a place goes before what comes there.
        events.sort_unstable();
        let workspace = workspace::bytes(step, &running, capability);
        let mut now = [0, 0, 0, 0, workspace];
        let mut most = Peak { bytes: now };
        for (_, comes, piece) in events {
            let (kind, bytes) = (kinds[piece] as usize, pieces.bytes[piece]);
            now[kind] = if comes { now[kind].saturating_add(bytes) } else { now[kind].saturating_sub(bytes) };
            let needed = Peak { bytes: now };
            if needed.total() > most.total() {
                most = needed;
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
