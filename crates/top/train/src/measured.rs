//! Measured times and losses of the steps of a run.

use std::time::Duration;

use serde::Serialize;

/// Steps at the begin of a run whose times are not counted, where the run has more than twice as many.
const WARM_UP: usize = 3;

/// Times and losses of the steps so far.
#[derive(Debug, Default)]
pub struct Steps {
    times: Vec<Duration>,
    /// Time of all steps with the waiting for their batches.
    spent: Vec<Duration>,
    /// Time in which the steps had no batch.
    waiting: Duration,
    losses: Losses,
}

/// Losses of the steps so far.
#[derive(Debug, Default)]
struct Losses {
    first: Option<f32>,
    last: Option<f32>,
    sum: f64,
}

/// Summary of the steps of a run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Summary {
    /// Number of steps.
    pub steps: usize,
    /// Number of steps at the begin without a counted time.
    pub warm_up: usize,
    /// Median time of a step: the batch is copied to its inputs, and the step runs; on a GPU on the device alone.
    pub median_ms: f64,
    /// Shortest time of a step.
    pub min_ms: f64,
    /// Longest time of a step.
    pub max_ms: f64,
    /// Mean time a step in which it had no batch.
    pub waiting_ms: f64,
    /// Samples a second over all counted steps, waiting included.
    pub samples_per_second: f64,
    /// Loss of the first step.
    pub first_loss: f32,
    /// Loss of the last step.
    pub loss: f32,
    /// Mean loss of all steps.
    pub mean_loss: f64,
}

impl Steps {
    /// Adds a step: the time in which it had no batch, the time spent on it in all, and the losses and times of steps that became known
    /// meanwhile.
    pub fn add(&mut self, waiting: Duration, spent: Duration, known: &[(f32, Duration)]) {
        self.waiting += waiting;
        self.spent.push(spent);
        for &(loss, time) in known {
            self.times.push(time);
            self.losses.first.get_or_insert(loss);
            self.losses.last = Some(loss);
            self.losses.sum += f64::from(loss);
        }
    }

    /// The summary, for a number of samples a step; `None` without steps.
    pub fn summary(&self, batch: u64) -> Option<Summary> {
        let steps = self.times.len();
        let warm_up = if steps > 2 * WARM_UP { WARM_UP } else { 0 };
        let mut times: Vec<f64> = self.times[warm_up..].iter().map(|time| time.as_secs_f64() * 1e3).collect();
        times.sort_unstable_by(f64::total_cmp);
        let (min_ms, max_ms) = (*times.first()?, *times.last()?);
        let middle = times.len() / 2;
        let median_ms =
            if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 };
        let waiting_ms = self.waiting.as_secs_f64() * 1e3 / steps as f64;
        let spent: Duration = self.spent[warm_up..].iter().sum();
        let mean_ms = spent.as_secs_f64() * 1e3 / (steps - warm_up) as f64;
        Some(Summary {
            steps,
            warm_up,
            median_ms,
            min_ms,
            max_ms,
            waiting_ms,
            samples_per_second: batch as f64 * 1e3 / mean_ms,
            first_loss: self.losses.first?,
            loss: self.losses.last?,
            mean_loss: self.losses.sum / steps as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_steps_are_not_counted() {
        let mut steps = Steps::default();
        for ms in [900, 800, 700, 1, 2, 3, 4] {
            let time = Duration::from_millis(ms);
            steps.add(Duration::from_millis(1), time + Duration::from_millis(1), &[(0.5, time)]);
        }
        let summary = steps.summary(7).expect("steps");
        assert_eq!((summary.median_ms, summary.min_ms, summary.max_ms), (2.5, 1.0, 4.0));
        assert!((summary.samples_per_second - 2000.0).abs() < 1e-6, "{summary:?}");
        assert!(Steps::default().summary(7).is_none());
    }
}
