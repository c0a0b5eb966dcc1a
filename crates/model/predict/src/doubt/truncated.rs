//! Doubt: an execution trace that ends in the middle of its step, so that the rest of the step is missing.

use super::Doubt;
use crate::step::Step;

/// Possible lengthening of the step: half-width of 90 %, logarithm of a factor. The length of the missing part is unknown.
const WIDTH: f64 = 1.6;

/// The doubt, where the step ends at the end of a cut file.
pub(super) fn doubt(recorded: &Step) -> Option<Doubt> {
    let at = recorded.cut_at?;
    let text = format!(
        "the execution trace ends in the middle (at byte {at}), and the step with it: what came after the cut is not in this time; \
         record it again"
    );
    Some(Doubt { kind: "cut", text, below: 0.0, above: WIDTH, no_estimate: true })
}
