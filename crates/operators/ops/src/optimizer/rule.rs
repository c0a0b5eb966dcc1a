//! Update rules of dense optimizers.

use std::fmt::Debug;

use super::OptimizerError;
use crate::simd::Simd;

/// A dense optimizer's settings and formulas, for one parameter p with gradient g and up to two elements of state.
pub trait Rule: Copy + Debug + Send + Sync + private::Formula {
    /// Name for messages.
    const NAME: &'static str;

    /// Number of elements of state for each parameter.
    fn states(&self) -> usize;

    /// Initial value of the state.
    fn initial(&self) -> f32 {
        0.0
    }

    /// Checks that all settings are in their ranges.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    fn check(&self) -> Result<(), OptimizerError>;

    /// The plain version: step `step`, from 1, of one parameter, in double precision.
    fn reference(&self, step: u64, parameter: &mut f64, gradient: f64, state: &mut [f64]);
}

pub(crate) mod private {
    use super::Simd;

    /// The fast version of a rule.
    pub trait Formula {
        /// Numbers that are the same for all parameters of a step.
        type Step: Copy + Send + Sync;

        /// Computes these numbers for step `step`, from 1.
        fn step(&self, step: u64) -> Self::Step;

        /// Applies the step to consecutive parameters. `state` slices that the rule does not use are empty.
        fn update<S: Simd>(
            s: S,
            step: &Self::Step,
            parameters: &mut [f32],
            gradient: &[f32],
            state: [&mut [f32]; 2],
        );
    }
}
