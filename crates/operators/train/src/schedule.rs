//! Schedules of the learning rate: linear warm-up, then a decay.
//!
//! A schedule is a factor of the optimizer's learning rate, a function of the step alone: a resumed run continues it
//! without further state. Steps count from 0; the formulas are those of `torch.optim.lr_scheduler`.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A schedule, the TOML section `[schedule]`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Linear rise at the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
    /// Decay after it.
    #[serde(default)]
    pub decay: Decay,
}

/// A linear rise to factor 1, as `LinearLR`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warmup {
    /// First step with factor 1.
    pub steps: u64,
    /// Factor of step 0, from 0 to 1.
    pub start: f64,
}

/// A decay from factor 1. `begin` is the last step with factor 1; without it, the end of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Decay {
    /// Factor 1, always.
    #[default]
    Constant,
    /// A power of the remaining share of the steps, as `PolynomialLR`, between 1 and a last factor.
    Polynomial {
        /// Last step with factor 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        begin: Option<u64>,
        /// Number of steps to the last factor.
        steps: u64,
        /// Exponent: 1 is linear.
        power: f64,
        /// Factor after the decay.
        #[serde(default)]
        end: f64,
    },
    /// Multiplication by `gamma` once in `every` steps, as `StepLR`.
    Step {
        /// Last step with factor 1, if `every` is 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        begin: Option<u64>,
        /// Number of steps with one factor.
        every: u64,
        /// Multiplier.
        gamma: f64,
    },
    /// Half a cosine wave from 1 to a last factor, as `CosineAnnealingLR`, constant after it.
    Cosine {
        /// Last step with factor 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        begin: Option<u64>,
        /// Number of steps to the last factor.
        steps: u64,
        /// Factor after the decay.
        #[serde(default)]
        end: f64,
    },
}

/// Reason why a schedule is invalid.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ScheduleError {
    /// A number of steps is 0.
    #[error("schedule: {field} is 0: give at least one step, or leave the part out")]
    NoSteps {
        /// The field of the section.
        field: &'static str,
    },
    /// A number is outside of its range.
    #[error("schedule: {field} = {value} is outside of {range}")]
    Range {
        /// The field of the section.
        field: &'static str,
        /// Its value.
        value: f64,
        /// The valid range, in words.
        range: &'static str,
    },
    /// The decay begins before the warm-up has ended.
    #[error(
        "schedule: decay.begin = {begin} is before the end of the warm-up at step {warmup}: begin there or later"
    )]
    Overlap {
        /// Begin of the decay.
        begin: u64,
        /// End of the warm-up.
        warmup: u64,
    },
}

impl Schedule {
    /// Checks the numbers of the schedule.
    ///
    /// # Errors
    ///
    /// The first number that is outside of its range; a decay that begins within the warm-up.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let share = |field, value: f64| match (0.0..=1.0).contains(&value) {
            true => Ok(()),
            false => Err(ScheduleError::Range { field, value, range: "0 to 1" }),
        };
        let steps =
            |field, steps: u64| if steps == 0 { Err(ScheduleError::NoSteps { field }) } else { Ok(()) };
        if let Some(Warmup { steps: count, start }) = self.warmup {
            steps("warmup.steps", count)?;
            share("warmup.start", start)?;
        }
        let begin = match self.decay {
            Decay::Constant => None,
            Decay::Polynomial { begin, steps: count, power, end } => {
                steps("decay.steps", count)?;
                share("decay.end", end)?;
                if !(power > 0.0 && power.is_finite()) {
                    return Err(ScheduleError::Range {
                        field: "decay.power",
                        value: power,
                        range: "positive numbers",
                    });
                }
                begin
            }
            Decay::Step { begin, every, gamma } => {
                steps("decay.every", every)?;
                share("decay.gamma", gamma)?;
                begin
            }
            Decay::Cosine { begin, steps: count, end } => {
                steps("decay.steps", count)?;
                share("decay.end", end)?;
                begin
            }
        };
        match (begin, self.warmup) {
            (Some(begin), Some(Warmup { steps: warmup, .. })) if begin < warmup => {
                Err(ScheduleError::Overlap { begin, warmup })
            }
            _ => Ok(()),
        }
    }

    /// Factor of the learning rate at a step, counted from 0.
    #[must_use]
    pub fn factor(&self, step: u64) -> f64 {
        match self.warmup {
            Some(Warmup { steps, start }) if step < steps => {
                start + (1.0 - start) * (step as f64 / steps as f64)
            }
            warmup => self.decay.factor(step, warmup.map_or(0, |warmup| warmup.steps)),
        }
    }

    /// Learning rate at a step, counted from 0, for the optimizer's learning rate `base`.
    #[must_use]
    pub fn rate(&self, base: f64, step: u64) -> f64 {
        base * self.factor(step)
    }
}

impl Decay {
    fn factor(&self, step: u64, warmed: u64) -> f64 {
        let since = |begin: Option<u64>| step.saturating_sub(begin.unwrap_or(warmed));
        let done = |begin, steps: u64| since(begin).min(steps) as f64 / steps.max(1) as f64;
        match *self {
            Decay::Constant => 1.0,
            Decay::Polynomial { begin, steps, power, end } => {
                end + (1.0 - end) * (1.0 - done(begin, steps)).powf(power)
            }
            Decay::Step { begin, every, gamma } => gamma.powf((since(begin) / every.max(1)) as f64),
            Decay::Cosine { begin, steps, end } => {
                end + (1.0 - end) * (1.0 + (PI * done(begin, steps)).cos()) / 2.0
            }
        }
    }
}
