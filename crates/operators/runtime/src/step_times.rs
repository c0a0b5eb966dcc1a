//! Measured times of a step.

use std::time::{Duration, Instant};

/// Measured times of a step and of its instructions, from the begin of the step on.
#[derive(Debug, Clone)]
pub struct StepTimes {
    /// Loss of the step; NaN for a step without one.
    pub loss: f32,
    /// Begin of the step on the host.
    pub begin: Instant,
    /// Copy of the inputs to a GPU; `None` on a CPU, where inputs are in place.
    pub inputs: Option<OpTimes>,
    /// The instructions, in order.
    pub instructions: Vec<OpTimes>,
    /// Wait of the host for the GPU at the end of the step; `None` on a CPU.
    pub wait: Option<Span>,
    /// End of the step on the host.
    pub end: Duration,
}

/// Times of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpTimes {
    /// On the host: the work on a CPU, or the launch on a GPU.
    pub host: Span,
    /// On a GPU: the work, from the end of the work before it or from the begin of its launch, the later of both.
    pub device: Option<Span>,
}

/// Begin and end, from the begin of the step on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Begin.
    pub begin: Duration,
    /// End, not before the begin.
    pub end: Duration,
}

impl Span {
    /// Time from begin to end.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.end.saturating_sub(self.begin)
    }
}

impl OpTimes {
    /// Time of the work: on a GPU on the device, else on the host.
    #[must_use]
    pub fn work(&self) -> Duration {
        self.device.unwrap_or(self.host).time()
    }
}

impl StepTimes {
    /// Time of the step: on a GPU from the begin of the copy of its inputs to the end of its last work on the device, else on the host.
    #[must_use]
    pub fn time(&self) -> Duration {
        let first = self.inputs.and_then(|inputs| inputs.device);
        let last = self.instructions.last().and_then(|last| last.device).or(first);
        first.zip(last).map_or(self.end, |(first, last)| last.end.saturating_sub(first.begin))
    }
}
