//! Regret of a plan: how much shorter another plan may be.

use crate::uncertainty::uncertainty;
use steptime_trace::Nanos;

/// Possible saving of another plan over the chosen one, as shares of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regret {
    /// Distance of the chosen plan to the bound, by predictions alone: no plan saves more.
    pub above_bound: f64,
    /// Expected saving of a plan at the bound, assuming that differences of plans have the uncertainty `plans.difference`,
    /// and that nothing is saved where the chosen plan is shorter after all. Any other plan saves less.
    pub expected: f64,
}

impl Regret {
    /// Computes the regret of a chosen plan with a predicted step, given a lower bound of all plans.
    #[must_use]
    pub fn new(step: Nanos, bound: Nanos) -> Regret {
        let above = if bound > Nanos::ZERO { (step.0 as f64 / bound.0 as f64).ln().max(0.0) } else { 0.0 };
        Regret {
            above_bound: 1.0 - (-above).exp(),
            expected: 1.0 - (-gain(above, uncertainty().plans.difference.value)).exp(),
        }
    }
}

/// Width of the pieces over which the density is summed, in standard deviations.
const PIECE: f64 = 0.01;
/// Number of pieces on each side of the mean.
const PIECES: i32 = 800;

/// Mean of a normal variable with negative values counted as zero.
fn gain(mean: f64, spread: f64) -> f64 {
    let pieces = (-PIECES..=PIECES).map(|at| f64::from(at) * PIECE);
    let density = |z: f64| (-0.5 * z * z).exp();
    let sums = pieces.fold((0.0, 0.0), |(sum, all), z| {
        (sum + density(z) * (mean + spread * z).max(0.0), all + density(z))
    });
    sums.0 / sums.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_spread_between_two_that_are_alike_counts() {
        // The mean of the positive half: one over the root of two pi.
        assert!((gain(0.0, 1.0) - 0.398_942).abs() < 1e-4);
        assert!((gain(3.0, 1.0) - 3.000_38).abs() < 1e-4);
        assert!(gain(-3.0, 1.0) < 1e-3 && gain(-3.0, 1.0) > 0.0);
        assert!((gain(0.1, 0.0) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_pick_further_from_the_bound_has_more_to_regret() {
        let of = |step: i64| Regret::new(Nanos(step), Nanos(1000));
        assert_eq!(of(1000).above_bound, 0.0);
        assert!((of(1250).above_bound - 0.2).abs() < 1e-9);
        assert!(of(1000).expected > 0.0 && of(1100).expected > of(1000).expected);
        assert!(of(1100).expected > of(1100).above_bound, "uncertainty adds to it");
        // A bound above the step, from loads that do not add up, has no effect.
        assert_eq!(of(900), of(1000));
        assert_eq!(Regret::new(Nanos(5), Nanos(0)).above_bound, 0.0);
    }
}
