//! Numbers of a progress line.

use std::collections::VecDeque;
use std::time::Duration;

/// Points of a window that are kept at most: the window's begin is that many parts of it exact.
const POINTS: u32 = 64;

/// Progress of a run over a moving window of time.
#[derive(Debug, Clone)]
pub struct Progress {
    steps: u64,
    window: Duration,
    points: VecDeque<Point>,
}

/// Totals at a moment.
#[derive(Debug, Clone, Copy)]
struct Point {
    step: u64,
    samples: u64,
    elapsed: Duration,
    /// Sum and number of the losses since the point before.
    loss: (f64, u64),
}

/// Numbers of one progress line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Number of steps that have been made.
    pub step: u64,
    /// Number of steps of the run.
    pub steps: u64,
    /// Loss of the last step.
    pub loss: f64,
    /// Mean loss of the window; NaN if one of its losses is.
    pub mean_loss: f64,
    /// Samples a second, over the window; `None` before any time has passed.
    pub samples_per_second: Option<f64>,
    /// Mean time of a step, over the window; `None` before a second point.
    pub step_time: Option<Duration>,
    /// Time to the last step, at the pace of the window; `None` before a second point.
    pub remaining: Option<Duration>,
    /// Time since the start of the process's run.
    pub elapsed: Duration,
}

impl Progress {
    /// The progress of a run of a number of steps, over a moving window. `step` steps were made before, by the run that
    /// is resumed; 0 for a new one.
    #[must_use]
    pub fn new(steps: u64, step: u64, window: Duration) -> Self {
        let start = Point { step, samples: 0, elapsed: Duration::ZERO, loss: (0.0, 0) };
        Progress { steps, window, points: VecDeque::from([start]) }
    }

    /// Adds the totals after a step: number of steps that have been made, the step's loss, number of samples and time
    /// since this process began; returns the numbers of its line.
    pub fn add(&mut self, step: u64, loss: f64, samples: u64, elapsed: Duration) -> Line {
        let apart = self.window / POINTS;
        // Close points become one, so that quick steps need no more of them than slow ones.
        let last = self.points.len() - 1;
        let joined = last > 0 && elapsed.saturating_sub(self.points[last - 1].elapsed) < apart;
        let before =
            if joined { self.points.pop_back().map_or((0.0, 0), |point| point.loss) } else { (0.0, 0) };
        let newest = Point { step, samples, elapsed, loss: (before.0 + loss, before.1 + 1) };
        self.points.push_back(newest);
        while self.points.len() > 2 && elapsed.saturating_sub(self.points[1].elapsed) >= self.window {
            self.points.pop_front();
        }
        let oldest = self.points[0];
        let time = elapsed.saturating_sub(oldest.elapsed);
        let steps = step.saturating_sub(oldest.step);
        let seconds = (!time.is_zero()).then_some(time.as_secs_f64());
        let step_seconds = seconds.filter(|_| steps > 0).map(|seconds| seconds / steps as f64);
        let left = self.steps.saturating_sub(step) as f64;
        let (sum, count) = self
            .points
            .iter()
            .skip(1)
            .fold((0.0, 0), |(sum, count), point| (sum + point.loss.0, count + point.loss.1));
        Line {
            step,
            steps: self.steps,
            loss,
            mean_loss: sum / count as f64,
            samples_per_second: seconds
                .map(|seconds| samples.saturating_sub(oldest.samples) as f64 / seconds),
            step_time: step_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            remaining: step_seconds.and_then(|seconds| Duration::try_from_secs_f64(left * seconds).ok()),
            elapsed,
        }
    }
}
