//! Device memory of a step over time.

use super::order::Order;
use super::pieces::Pieces;
use super::{Kind, Peak, copied_ahead, enclosing_functions, kinds, lifetimes, sharded, workspace};
use crate::ids::OpId;
use crate::schedule::ScheduledStep;
use crate::step::StepIr;
use crate::tensors::LifetimeEnd;

/// Memory use of tensors from one moment to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The op that begins or ends at this moment.
    pub op: OpId,
    /// Whether it ends.
    pub ends: bool,
    /// Memory use from then on.
    pub needs: Peak,
}

/// The memory use of a step each time it changes, in the order in which ops begin and end. Arguments are as for [`Peak::find`].
#[must_use]
pub fn over(step: &StepIr, scheduled: &ScheduledStep, capability: Option<u32>) -> Vec<Moment> {
    let order = Order::new(step, scheduled);
    let pieces = Pieces::find(step, &order.ended);
    let running = step.running();
    let within = enclosing_functions::find(step, &running, &order);
    let mut lives = lifetimes::find(step, &order, (&running, &within), &pieces);
    sharded::keep(step, &order, &running, &pieces, &mut lives);
    let kinds = kinds::find(step, &order, &within, &pieces, &lives);
    let ahead = copied_ahead(step, &running, &pieces);
    let zeroed = lifetimes::zeroed(step, &order);
    // Begins and ends of lifetimes, by place.
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
                LifetimeEnd::LastUse => lives_in(made, life.last),
                LifetimeEnd::EndOfStep => lives_in(made, usize::MAX),
                LifetimeEnd::NextStep => {
                    lives_in(0, made + 1);
                    lives_in(made, usize::MAX);
                }
            },
        }
    }
    // At one place, pieces are freed before others are allocated.
    events.sort_unstable();
    let mut now = [0; Kind::ALL.len()];
    now[Kind::Workspace as usize] = workspace::bytes(step, &running, capability);
    let mut moments: Vec<Moment> = Vec::new();
    for (place, comes, piece) in events {
        // Pieces that outlive the step are not freed.
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
