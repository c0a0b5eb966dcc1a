//! An execution trace that ends in the middle, of which the whole step is made: the rest of the step is missing.

use super::Doubt;
use crate::step::Step;

/// How much longer the whole step may be: half-width of 90 %, logarithm of a factor. How much is missing is not known.
const WIDTH: f64 = 1.6;

/// Whether the step ends where its file does.
pub(super) fn doubt(recorded: &Step) -> Option<Doubt> {
    let at = recorded.cut_at?;
    let text = format!(
        "the execution trace ends in the middle (at byte {at}), and the step with it: what came after the cut is not in this time; \
         record it again"
    );
    Some(Doubt { kind: "cut", text, below: 0.0, above: WIDTH, no_estimate: true })
}
