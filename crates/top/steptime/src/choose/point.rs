//! A step at one batch on one GPU: its time, its memory, what bounds it, and what of its interval it shares with other GPUs.

use steptime_step::Peak;
use steptime_trace::Nanos;

use super::bound::{self, Limit};
use super::ratio::{Ratio, Widths};
use crate::ask::WhatIfs;
use crate::doubt::Doubt;
use crate::error::Error;
use crate::predict::at_speeds;
use crate::whatif::{Costed, Edited, Outcome};

/// A GPU that is twice as fast saves less than this share of the step: it brings nothing.
const NOTHING: f64 = 0.03;

/// A step at one batch on one GPU.
#[derive(Debug, Clone)]
pub struct OperatingPoint {
    /// Samples of the step, where they are known.
    pub samples: Option<u64>,
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
    /// What bounds it.
    pub limit: Limit,
    /// The share of the step that a GPU twice as fast would save, its link to the host too ...
    pub saved_by_gpu: f64,
    /// ... and that a host twice as fast would.
    pub saved_by_host: f64,
    /// What speaks against it; the interval is wider by these.
    pub doubts: Vec<Doubt>,
    pub(super) widths: Widths,
}

impl OperatingPoint {
    /// Of a changed step that has so many samples.
    pub(super) fn of(
        asked: &WhatIfs<'_>,
        edited: &Edited,
        samples: Option<u64>,
    ) -> Result<OperatingPoint, Error> {
        let (step, pricing, base) = asked.parts();
        let costed = Costed::of(step, &pricing, base, edited)?;
        let Outcome { step, interval, active, peak, fits, doubts } =
            Outcome::of(base, edited, &costed, None)?;
        let priced = costed.priced(edited, None)?;
        let of_step =
            |host: f64, device: f64| at_speeds(&priced, host, device).0 as f64 / step.0.max(1) as f64;
        let [host, device] = [priced.host.spread, costed.device_spread()];
        let saved_by_gpu = 1.0 - of_step(1.0, 0.5);
        let saved_by_host = 1.0 - of_step(0.5, 1.0);
        let times = |launch: &crate::device::Launch| -> Nanos {
            launch.activities.iter().map(|&at| priced.durations[at]).sum()
        };
        let limit = match asked.spec() {
            Some(spec) if saved_by_gpu >= saved_by_host => bound::of_device(edited, spec, times),
            _ => Limit::Host,
        };
        let widths = Widths {
            host: [(-host).exp(), host.exp()].map(|times| of_step(times, 1.0).ln()),
            device: [(-device).exp(), device.exp()].map(|times| of_step(1.0, times).ln()),
        };
        Ok(OperatingPoint {
            samples,
            step,
            interval,
            active,
            peak,
            fits,
            limit,
            saved_by_gpu,
            saved_by_host,
            doubts,
            widths,
        })
    }

    /// Whether a faster GPU would bring nothing.
    #[must_use]
    pub fn is_host_bound(&self) -> bool {
        self.limit == Limit::Host && self.saved_by_gpu < NOTHING
    }

    /// Whether its time is too little known for a single number.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.step > Nanos::ZERO && !self.doubts.iter().any(|doubt| doubt.no_estimate)
    }

    /// How many times as many samples a second this is as another; as many steps where both have as many samples, or nobody knows.
    /// `None` where either time is not known.
    #[must_use]
    pub fn ratio_to(&self, other: &OperatingPoint) -> Option<Ratio> {
        if !(self.is_known() && other.is_known()) {
            return None;
        }
        let samples = match (self.samples, other.samples) {
            (Some(own), Some(others)) => own as f64 / others as f64,
            (None, None) => 1.0,
            _ => return None,
        };
        let times = samples * other.step.0 as f64 / self.step.0 as f64;
        Some(Ratio::new(times, [&self.widths, &other.widths], [&self.doubts, &other.doubts]))
    }

    /// Samples a second; `None` where they are not known.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let samples = self.samples.filter(|_| self.step > Nanos::ZERO)?;
        Some(samples as f64 / self.step.0 as f64 * 1e9)
    }
}
