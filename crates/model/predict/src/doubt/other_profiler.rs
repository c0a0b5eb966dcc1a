//! Doubt: a step recorded by another profiler than PyTorch's.

use steptime_trace::Origin;

use super::Doubt;
use crate::step::Step;
use crate::uncertainty::uncertainty;

/// The doubt, where the profiler's cost to the host stays in.
pub(super) fn doubt(recorded: &Step) -> Option<Doubt> {
    let by = match recorded.origin {
        Origin::Kineto | Origin::Train => return None,
        Origin::Xla => "XLA's profiler",
        Origin::Nsight => "Nsight Systems",
    };
    let text = format!(
        "recorded by {by}: host times include its cost, which is not known; ops have no arguments, so that another GPU is a guess and no \
         change can be tried; record a PyTorch step with steptime.record"
    );
    Some(Doubt {
        kind: "profiler",
        text,
        below: uncertainty().doubts.other_profiler.below,
        above: 0.0,
        no_estimate: false,
    })
}
