//! A step at one batch on one GPU: its time, memory and bottleneck, and the part of its interval that it shares with other GPUs.

use steptime_step::Peak;
use steptime_trace::Nanos;

use super::bound::{self, Limit};
use super::ratio::{Ratio, Widths};
use crate::doubt::Doubt;
use crate::error::Error;
use crate::predict::at_speeds;
use crate::query::WhatIfs;
use crate::uncertainty::uncertainty;
use crate::whatif::{ModifiedStep, Outcome, PricedStep};

/// A step at one batch on one GPU.
#[derive(Debug, Clone)]
pub struct OperatingPoint {
    /// Samples of the step, where known.
    pub samples: Option<u64>,
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
    /// Bottleneck.
    pub limit: Limit,
    /// Share of the step that a GPU twice as fast would save, with its link to the host twice as fast too.
    pub saved_by_gpu: f64,
    /// Share of the step that a host twice as fast would save.
    pub saved_by_host: f64,
    /// Doubts about it; the interval is wider by these.
    pub doubts: Vec<Doubt>,
    pub(super) widths: Widths,
}

impl OperatingPoint {
    /// Prices a changed step of `samples` samples.
    pub(super) fn price(
        asked: &WhatIfs<'_>,
        edited: &ModifiedStep,
        samples: Option<u64>,
    ) -> Result<OperatingPoint, Error> {
        let (step, pricing, base) = asked.parts();
        let costed = PricedStep::price(step, &pricing, base, edited)?;
        let Outcome { step, interval, active, peak, fits, doubts } =
            Outcome::simulate(base, edited, &costed, None)?;
        let priced = costed.priced(edited, None)?;
        let of_step =
            |host: f64, device: f64| at_speeds(&priced, host, device).0 as f64 / step.0.max(1) as f64;
        let [host, device] = [priced.host.spread, costed.device_spread()];
        let saved_by_gpu = 1.0 - of_step(1.0, 0.5);
        let saved_by_host = 1.0 - of_step(0.5, 1.0);
        let times = |launch: &crate::pricing::Launch| -> Nanos {
            launch.activities.iter().map(|&at| priced.durations[at]).sum()
        };
        let limit = match asked.spec() {
            Some(spec) if saved_by_gpu >= saved_by_host => bound::device_limit(edited, spec, times),
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

    /// Whether the host alone bounds the step, so that a faster GPU would not shorten it.
    #[must_use]
    pub fn is_host_bound(&self) -> bool {
        self.limit == Limit::Host && self.saved_by_gpu < uncertainty().decisions.host_bound
    }

    /// Whether enough is known of its time for a single number.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.step > Nanos::ZERO && !self.doubts.iter().any(|doubt| doubt.no_estimate)
    }

    /// Ratio of its samples per second to those of another; ratio of steps per second where neither batch is known.
    /// `None` where either time is unknown, or only one batch is known.
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

    /// Samples per second; `None` where the batch is unknown.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let samples = self.samples.filter(|_| self.step > Nanos::ZERO)?;
        Some(samples as f64 / self.step.0 as f64 * 1e9)
    }
}
