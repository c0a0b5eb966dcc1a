//! Doubt: an execution trace that ends in the middle of its step, so that the rest of the step is missing.

use super::Doubt;
use crate::step::Step;
use crate::uncertainty::uncertainty;

/// The doubt, where the step ends at the end of a cut file.
pub(super) fn doubt(recorded: &Step) -> Option<Doubt> {
    let at = recorded.cut_at?;
    let text = format!(
        "the execution trace ends in the middle of the step (at byte {at}): the rest of the step is not in this time; record it again"
    );
    Some(Doubt { kind: "cut", text, below: 0.0, above: uncertainty().unknown.work, no_estimate: true })
}
