//! The device memory that a step needs, from its first op to its last.

use super::order::Order;
use super::pieces::Pieces;
use super::{Kind, Peak, copied_ahead, kinds, lives, sharded, within, workspace};
use crate::ids::OpId;
use crate::schedule::Scheduled;
use crate::step::Step;
use crate::tensors::Until;

/// The memory that tensors need from one moment on to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The op that begins or ends then.
    pub op: OpId,
    /// Whether it ends.
    pub ends: bool,
    /// What is needed from then on.
    pub needs: Peak,
}

/// The memory that a step needs, each time it changes, in the order in which ops begin and end. Arguments are as for
/// [`Peak::of`].
#[must_use]
pub fn over(step: &Step, scheduled: &Scheduled, capability: Option<u32>) -> Vec<Moment> {
    let order = Order::of(step, scheduled);
    let pieces = Pieces::of(step, &order.ended);
    let running = step.running();
    let within = within::of(step, &running, &order);
    let mut lives = lives::of(step, &order, (&running, &within), &pieces);
    sharded::keep(step, &order, &running, &pieces, &mut lives);
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
            (Some(made), _) => match pieces.until[piece] {
                Until::LastUse => lives_in(made, life.last),
                Until::EndOfStep => lives_in(made, usize::MAX),
                Until::NextStep => {
                    lives_in(0, made + 1);
                    lives_in(made, usize::MAX);
                }
            },
        }
    }
    // What goes at a place goes before what comes there.
    events.sort_unstable();
    let mut now = [0; Kind::ALL.len()];
    now[Kind::Workspace as usize] = workspace::bytes(step, &running, capability);
    let mut moments: Vec<Moment> = Vec::new();
    for (place, comes, piece) in events {
        // What is there for good goes nowhere.
        let Some(&(op, ends)) = order.places.get(place) else { continue };
        let own = (kinds[piece], pieces.bytes[piece]);
        for (kind, bytes) in [own, (Kind::Workspace, pieces.spare[piece])] {
            let now = &mut now[kind as usize];
            *now = if comes { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        }
        let moment = Moment { op, ends, needs: Peak { bytes: now } };
        match moments.last_mut() {
            Some(last) if (last.op, last.ends) == (op, ends) => *last = moment,
            _ => moments.push(moment),
        }
    }
    moments
}
