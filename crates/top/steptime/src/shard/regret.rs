//! What it may cost to take a plan: how much shorter another may be.

use steptime_trace::Nanos;

/// How far the difference of two plans is from the predicted one: standard deviation of the logarithm of a step. It is that of 55
/// pairs of eleven recorded jobs, predicted from their descriptions on a host that is not known (`validate --planner torchrec`): what
/// the host is slower than predicted is in all of them and drops out. Pairs of one model, which share kernels too, should be nearer;
/// the one that was recorded, a good and a bad plan, is 9.7 % off.
pub const SPREAD: f64 = 0.068;
/// Where that is from.
pub const SPREAD_FROM: &str = "55 pairs of recorded jobs on H200s";

/// How much shorter than the step with the pick another may be, as a share of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regret {
    /// How far the pick is above the bound, by predictions alone: no plan is better by more.
    pub above_bound: f64,
    /// What a plan at the bound is expected to save if it is taken for granted that differences of plans are as uncertain as [`SPREAD`]
    /// says, and nothing is saved where the pick is shorter after all. Of any other plan it is less.
    pub expected: f64,
}

impl Regret {
    /// Of a pick with a predicted step where none can be shorter than the bound.
    #[must_use]
    pub fn of(step: Nanos, bound: Nanos) -> Regret {
        let above = if bound > Nanos::ZERO { (step.0 as f64 / bound.0 as f64).ln().max(0.0) } else { 0.0 };
        Regret { above_bound: 1.0 - (-above).exp(), expected: 1.0 - (-gain(above, SPREAD)).exp() }
    }
}

/// How wide the pieces are by which the density is summed, in standard deviations, ...
const PIECE: f64 = 0.01;
/// ... and from where to where.
const PIECES: i32 = 800;

/// The mean of a normal variable where what is below zero counts as zero.
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
        let of = |step: i64| Regret::of(Nanos(step), Nanos(1000));
        assert_eq!(of(1000).above_bound, 0.0);
        assert!((of(1250).above_bound - 0.2).abs() < 1e-9);
        assert!(of(1000).expected > 0.0 && of(1100).expected > of(1000).expected);
        assert!(of(1100).expected > of(1100).above_bound, "uncertainty adds to it");
        // A bound that is above the step, as loads that do not add up make it, is none.
        assert_eq!(of(900), of(1000));
        assert_eq!(Regret::of(Nanos(5), Nanos(0)).above_bound, 0.0);
    }
}
