//! Losses with their gradients in the same pass: mean squared error, and binary cross-entropy of logits.
//!
//! Sums are kept in double precision, in parts that do not depend on the number of threads, so the result is
//! bit-identical for any number of threads.

mod error;
mod kernel;
pub mod reference;

pub use error::LossError;

use crate::Cpu;
use kernel::{Job, Place};

/// Number of elements of one part of the work.
const PART: usize = 8192;

/// Measure of the difference between predictions and targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loss {
    /// `(x - z)^2`
    Mse,
    /// `-z ln s(x) - (1 - z) ln(1 - s(x))` with `s` the sigmoid, computed as `|x| w + ln(1 + e^-|x|)` with
    /// `w` = `z` for negative `x`, `1 - z` for others, which neither overflows nor cancels. Targets may be any number in 0..=1.
    BceWithLogits,
}

/// Reduction of the losses of elements to one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The mean.
    Mean,
    /// The sum.
    Sum,
}

impl Reduction {
    fn scale(self, len: usize) -> f64 {
        match self {
            Reduction::Mean => 1.0 / len as f64,
            Reduction::Sum => 1.0,
        }
    }
}

impl Loss {
    /// Computes the mean or sum of the losses of `prediction[i]` and `target[i]`.
    ///
    /// # Errors
    ///
    /// Lengths differ, or a mean of no elements is requested.
    pub fn value(
        self,
        cpu: &Cpu,
        prediction: &[f32],
        target: &[f32],
        reduction: Reduction,
    ) -> Result<f32, LossError> {
        check("target", prediction.len(), target.len())?;
        let scale = mean_of(prediction, reduction)?;
        let jobs = prediction.chunks(PART).map(|_| Job::Sum);
        let sum = self.parts(cpu, prediction, target, jobs);
        Ok((sum * scale) as f32)
    }

    /// Computes the same, and its gradient with respect to each prediction, in one pass.
    ///
    /// # Errors
    ///
    /// Lengths differ, or a mean of no elements is requested.
    pub fn value_and_gradient(
        self,
        cpu: &Cpu,
        prediction: &[f32],
        target: &[f32],
        reduction: Reduction,
        gradient: &mut [f32],
    ) -> Result<f32, LossError> {
        check("target", prediction.len(), target.len())?;
        check("gradient", prediction.len(), gradient.len())?;
        let scale = mean_of(prediction, reduction)?;
        let jobs =
            gradient.chunks_mut(PART).map(|gradient| Job::SumAndGradient { scale: scale as f32, gradient });
        let sum = self.parts(cpu, prediction, target, jobs);
        Ok((sum * scale) as f32)
    }

    /// Computes the loss of each element, without reduction.
    ///
    /// # Errors
    ///
    /// Lengths differ.
    pub fn each(
        self,
        cpu: &Cpu,
        prediction: &[f32],
        target: &[f32],
        out: &mut [f32],
    ) -> Result<(), LossError> {
        check("target", prediction.len(), target.len())?;
        check("output", prediction.len(), out.len())?;
        self.parts(cpu, prediction, target, out.chunks_mut(PART).map(|out| Job::Each { out }));
        Ok(())
    }

    /// Computes the gradient of each prediction from that of its own loss.
    ///
    /// # Errors
    ///
    /// Lengths differ.
    pub fn each_backward(
        self,
        cpu: &Cpu,
        prediction: &[f32],
        target: &[f32],
        upstream: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), LossError> {
        check("target", prediction.len(), target.len())?;
        check("upstream gradient", prediction.len(), upstream.len())?;
        check("gradient", prediction.len(), gradient.len())?;
        let jobs = gradient.chunks_mut(PART).zip(upstream.chunks(PART));
        let jobs = jobs.map(|(gradient, upstream)| Job::Gradient { upstream, gradient });
        self.parts(cpu, prediction, target, jobs);
        Ok(())
    }

    /// Does the jobs, one for each part, and returns the sum of losses if the jobs compute it.
    fn parts<'a>(
        self,
        cpu: &Cpu,
        prediction: &[f32],
        target: &[f32],
        jobs: impl Iterator<Item = Job<'a>>,
    ) -> f64 {
        let places = prediction.chunks(PART).zip(target.chunks(PART));
        let mut parts: Vec<(Place<'_>, Job<'a>, f64)> = places
            .zip(jobs)
            .map(|((prediction, target), job)| (Place { prediction, target }, job, 0.0))
            .collect();
        cpu.run_with(&mut parts, |_, (place, job, sum)| *sum = kernel::run(cpu.arch(), self, *place, job));
        parts.iter().map(|(_, _, sum)| sum).sum()
    }
}

fn check(operand: &'static str, expected: usize, given: usize) -> Result<(), LossError> {
    if given == expected { Ok(()) } else { Err(LossError::Length { operand, given, expected }) }
}

fn mean_of(prediction: &[f32], reduction: Reduction) -> Result<f64, LossError> {
    if prediction.is_empty() && reduction == Reduction::Mean {
        return Err(LossError::Empty);
    }
    Ok(reduction.scale(prediction.len()))
}
