//! Numbers of a changed step, without their explanation.

use steptime_step::Peak;
use steptime_trace::Nanos;

use super::PricedStep;
use super::{Base, ModifiedStep};
use crate::doubt::{self, Doubt};
use crate::error::Error;
use crate::memory;
use crate::predict::Simulation;

/// Predicted time of a changed step.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Time from one step to the next.
    pub step: Nanos,
    /// Interval of the step time with probability [`crate::INTERVAL_LEVEL`].
    pub interval: [Nanos; 2],
    /// Device active time of the step.
    pub active: Nanos,
    /// Peak device memory of its tensors; `None` where unknown.
    pub peak: Option<Peak>,
    /// Whether the GPU has room for that; `None` where either is unknown.
    pub fits: Option<bool>,
    /// Doubts about it; the interval is wider by these.
    pub doubts: Vec<Doubt>,
}

impl Outcome {
    /// Simulates a changed step with its costs.
    pub(crate) fn simulate(
        base: &Base,
        edited: &ModifiedStep,
        costed: &PricedStep,
        host_times: Option<f64>,
    ) -> Result<Outcome, Error> {
        let priced = costed.priced(edited, host_times)?;
        let simulated = Simulation::from_priced(&priced, costed.device.spread);
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
