//! The numbers of a changed step, without what explains them.

use steptime_step::Peak;
use steptime_trace::Nanos;

use super::Costed;
use super::{Base, Edited};
use crate::doubt::{self, Doubt};
use crate::error::Error;
use crate::memory;
use crate::predict::Simulated;

/// How long a changed step takes.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// From one step to the next.
    pub step: Nanos,
    /// Holds the step time with probability [`crate::INTERVAL_LEVEL`].
    pub interval: [Nanos; 2],
    /// How long of the step the device works.
    pub active: Nanos,
    /// The most device memory that its tensors need; `None` where that is not known.
    pub peak: Option<Peak>,
    /// Whether the GPU has room for that; `None` where either is not known.
    pub fits: Option<bool>,
    /// What speaks against it; the interval is wider by these.
    pub doubts: Vec<Doubt>,
}

impl Outcome {
    /// Of a step whose costs are there.
    pub(crate) fn of(
        base: &Base,
        edited: &Edited,
        costed: &Costed,
        host_times: Option<f64>,
    ) -> Result<Outcome, Error> {
        let priced = costed.priced(edited, host_times)?;
        let simulated = Simulated::of(&priced, costed.device.spread);
        let mut doubts = costed.doubts(base, edited, simulated.timeline.period);
        doubt::memory::first(&mut doubts, costed.peak.as_ref(), base.spec.as_ref());
        Ok(Outcome {
            step: simulated.timeline.period,
            interval: doubt::widened(&doubts, simulated.timeline.period, simulated.interval),
            active: simulated.timeline.active(),
            fits: memory::fits(costed.peak.as_ref(), base.spec.as_ref()),
            peak: costed.peak,
            doubts,
        })
    }
}
