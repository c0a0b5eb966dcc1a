//! Estimated duration of a kernel, its uncertainty, and its source.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use steptime_trace::Nanos;

/// Kind of a family's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// A published formula, or a network over sizes where the publication used one.
    Paper,
    /// Steptime's formula times factors fitted to a sweep.
    Analytic,
    /// Boosted trees on the ratio of measured to analytic time.
    Learnt,
}

impl ModelKind {
    /// All kinds.
    pub const ALL: [ModelKind; 3] = [ModelKind::Paper, ModelKind::Analytic, ModelKind::Learnt];

    /// Name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ModelKind::Paper => "paper",
            ModelKind::Analytic => "analytic",
            ModelKind::Learnt => "learnt",
        }
    }
}

/// Source of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Measured on this very call.
    Measured,
    /// A model fitted to a sweep of this GPU: trees, or steptime's formula with fitted factors.
    Fitted,
    /// A model fitted to a sweep of another GPU, evaluated with this one's specification.
    Transferred,
    /// Steptime's formula and the GPU's specification, nothing fitted.
    Analytic,
    /// A published formula, or the kind of network that the publication used.
    Paper,
    /// Bytes of an unknown op.
    Fallback,
    /// Measured on another GPU, and scaled to this one by the resources that the kernel's name suggests.
    Scaled,
    /// None: the duration is unknown.
    Unknown,
}

impl Source {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Source::Measured => "measured",
            Source::Fitted => "fitted",
            Source::Transferred => "transferred",
            Source::Analytic => "analytic",
            Source::Paper => "paper",
            Source::Fallback => "fallback",
            Source::Scaled => "scaled",
            Source::Unknown => "unknown",
        }
    }
}

/// Median of a call's duration, and its uncertainty.
///
/// Half-widths are those of the 90 % interval of the logarithm of time: `time * exp(±half_width)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub time: Nanos,
    /// Part of the half-width that is this call's own: independent of all others.
    pub own: f64,
    /// Part of the half-width that all calls of its family have in common.
    pub shared: f64,
    pub source: Source,
    /// Whether the call is outside of the model's fitted range.
    pub extrapolated: bool,
}

impl Estimate {
    /// Estimate without any information.
    pub const UNPRICED: Estimate =
        Estimate { time: Nanos::ZERO, own: 0.0, shared: 0.0, source: Source::Unknown, extrapolated: false };

    /// This estimate, marked as from models of other GPUs.
    #[must_use]
    pub(super) fn transferred(self) -> Estimate {
        match self.source {
            Source::Fitted => Estimate { source: Source::Transferred, ..self },
            _ => self,
        }
    }

    /// Sum with another call of the same family: their own errors are independent.
    #[must_use]
    pub fn plus(&self, other: &Estimate) -> Estimate {
        let time = self.time + other.time;
        let share = |part: &Estimate| part.time.0 as f64 / time.0.max(1) as f64;
        let (a, b) = (share(self), share(other));
        Estimate {
            time,
            own: (a * self.own).hypot(b * other.own),
            shared: a * self.shared + b * other.shared,
            source: self.source,
            extrapolated: self.extrapolated || other.extrapolated,
        }
    }

    /// Half-width of the 90 % interval of the logarithm of time, both parts together.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.own.hypot(self.shared)
    }

    /// 90 % interval: its lower and its upper end.
    #[must_use]
    pub fn interval(&self) -> [Nanos; 2] {
        let factor = self.half_width().exp();
        let time = self.time.0 as f64;
        [time / factor, time * factor].map(|end| Nanos(end.round() as i64))
    }
}

/// Sum of many estimates.
///
/// A family's shared errors have the same sign: they add up. Families are independent of one another, and so are
/// the calls' own errors: they add in quadrature. If nothing was fitted, or on another GPU, all families
/// share the errors of the specification. Half-widths are of the sum itself, which is close to normal and needs no logarithm.
#[derive(Debug, Clone, Default)]
pub struct EstimateSum {
    time: Nanos,
    own_squared: f64,
    shared: FxHashMap<&'static str, f64>,
}

impl EstimateSum {
    /// Adds the same estimate `times` times: its own error is the same in each, because the call is the same.
    pub fn add(&mut self, family: &'static str, estimate: &Estimate, times: u64) {
        let time = estimate.time.0 as f64 * times as f64;
        self.time += Nanos(time as i64);
        self.own_squared += (time * estimate.own).powi(2);
        let family = match estimate.source {
            Source::Analytic => "specification",
            Source::Scaled => "scaled",
            Source::Transferred => "transferred",
            _ => family,
        };
        *self.shared.entry(family).or_default() += time * estimate.shared;
    }

    /// Sum of the times.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.time
    }

    /// Half-width of its 90 % interval.
    #[must_use]
    pub fn half_width(&self) -> Nanos {
        // Summed in the order of size, so that the order of insertion leaves no trace in the last bit.
        let mut parts: Vec<f64> = self.shared.values().map(|part| part * part).collect();
        parts.push(self.own_squared);
        parts.sort_by(f64::total_cmp);
        Nanos(parts.iter().sum::<f64>().sqrt().round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(own: f64, shared: f64) -> Estimate {
        Estimate { time: Nanos(10_000), own, shared, source: Source::Fitted, extrapolated: false }
    }

    #[test]
    fn an_interval_is_symmetric_in_the_logarithm() {
        assert_eq!(estimate(0.03, 0.04).interval(), [Nanos(9_512), Nanos(10_513)]);
    }

    #[test]
    fn shared_errors_add_up_and_own_ones_in_quadrature() {
        let mut shared = EstimateSum::default();
        let mut own = EstimateSum::default();
        let mut families = EstimateSum::default();
        for at in 0..100 {
            shared.add("gemm", &estimate(0.0, 0.1), 1);
            own.add("gemm", &estimate(0.1, 0.0), 1);
            families.add(if at % 2 == 0 { "gemm" } else { "pool" }, &estimate(0.0, 0.1), 1);
        }
        assert_eq!(shared.time(), Nanos(1_000_000));
        assert_eq!(shared.half_width(), Nanos(100_000));
        assert_eq!(own.half_width(), Nanos(10_000));
        assert_eq!(families.half_width(), Nanos(70_711));
    }

    #[test]
    fn what_a_specification_gets_wrong_is_shared_by_all_families() {
        let mut sum = EstimateSum::default();
        for family in ["gemm", "pool", "norm", "loss"] {
            sum.add(family, &Estimate { source: Source::Analytic, ..estimate(0.0, 0.4) }, 1);
        }
        assert_eq!(sum.half_width(), Nanos(16_000));
    }

    #[test]
    fn the_same_call_again_has_the_same_error() {
        let mut sum = EstimateSum::default();
        sum.add("gemm", &estimate(0.1, 0.0), 100);
        assert_eq!(sum.half_width(), Nanos(100_000));
    }
}
