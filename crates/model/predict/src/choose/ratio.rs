//! Speed ratio of two GPUs, and its uncertainty.
//!
//! Errors that both sides share cancel: the host's error is the same factor on both sides. Errors of kernel models do not: on 94 whole models,
//! timed by others on nine GPUs (`benches/results/neusight_models.json`), the correlation of a model's errors on two GPUs is 0.03 to
//! 0.06. Intervals that take these errors as independent hold for 92 % of 203 pairs; with a family's whole error cancelled they would for 34 %.

use crate::doubt::Doubt;
use crate::uncertainty::uncertainty;

/// Logarithm of the factor on the step time with one part at either end of its own interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Widths {
    pub(super) host: [f64; 2],
    pub(super) device: [f64; 2],
}

/// Ratio of the samples per second of two GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio.
    pub times: f64,
    /// Its interval with probability [`crate::INTERVAL_LEVEL`].
    pub interval: [f64; 2],
}

impl Ratio {
    /// Makes the ratio of two steps, from the widths and the doubts of each.
    pub(super) fn new(times: f64, widths: [&Widths; 2], doubts: [&[Doubt]; 2]) -> Ratio {
        let width = width(widths, doubts);
        Ratio { times, interval: [times * (-width).exp(), times * width.exp()] }
    }

    /// Whether the interval leaves no doubt which GPU is faster.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.interval[0] > 1.0 || self.interval[1] < 1.0
    }
}

/// Half-width of the logarithm of a ratio.
fn width(widths: [&Widths; 2], doubts: [&[Doubt]; 2]) -> f64 {
    let [own, others] = widths;
    let host =
        own.host.iter().zip(&others.host).map(|(own, others)| (own - others).abs()).fold(0.0, f64::max);
    let device = widths.map(|widths| widths.device.iter().map(|end| end.abs()).fold(0.0, f64::max));
    // Each of the two runs drifts independently.
    let drift = uncertainty().next_run.drift;
    let drift = drift.hypot(drift);
    let of_doubts = doubted(doubts[0], doubts[1]);
    [host, device[0], device[1], drift, of_doubts].into_iter().fold(0.0, f64::hypot)
}

/// Half-width from doubts: for one kind on both sides the difference, for work without a price both.
fn doubted(own: &[Doubt], others: &[Doubt]) -> f64 {
    let wide = |doubt: &Doubt| doubt.below.max(doubt.above);
    let of = |all: &[Doubt], kind: &str| {
        all.iter().filter(|doubt| doubt.kind == kind).map(wide).fold(0.0, f64::hypot)
    };
    let mut kinds: Vec<&str> = own.iter().chain(others).map(|doubt| doubt.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let each = kinds.into_iter().map(|kind| {
        let [own, others] = [of(own, kind), of(others, kind)];
        if kind == "unpriced" { own.hypot(others) } else { own - others }
    });
    each.fold(0.0, f64::hypot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(host: f64, device: f64) -> Widths {
        Widths { host: [-host, host], device: [-device, device] }
    }

    fn doubt(kind: &'static str, width: f64) -> Doubt {
        Doubt { kind, text: String::new(), below: width, above: width, no_estimate: false }
    }

    #[test]
    fn a_host_that_bounds_both_cancels() {
        let bound = width([&widths(0.6, 0.0), &widths(0.6, 0.0)], [&[], &[]]);
        assert!((bound - uncertainty().next_run.drift * 2f64.sqrt()).abs() < 1e-12, "{bound}");
        let one = width([&widths(0.6, 0.0), &widths(0.1, 0.0)], [&[], &[]]);
        assert!((one - 0.5f64.hypot(bound)).abs() < 1e-12, "{one}");
    }

    #[test]
    fn errors_of_kernels_are_independent() {
        let both = width([&widths(0.0, 0.3), &widths(0.0, 0.4)], [&[], &[]]);
        assert!((both - 0.5f64.hypot(uncertainty().next_run.drift * 2f64.sqrt())).abs() < 1e-12, "{both}");
    }

    #[test]
    fn what_speaks_against_both_cancels_and_work_without_a_price_does_not() {
        assert_eq!(doubted(&[doubt("replay", 0.2)], &[doubt("replay", 0.2)]), 0.0);
        assert!((doubted(&[doubt("replay", 0.2)], &[]) - 0.2).abs() < 1e-12);
        assert!((doubted(&[doubt("unpriced", 0.3)], &[doubt("unpriced", 0.4)]) - 0.5).abs() < 1e-12);
    }
}
