//! Sources of device time.

use std::collections::BTreeMap;

use serde::Serialize;
use steptime_predict::{PricedLaunches, pricing::ModelCoverage};

/// Sources of predicted device time, as shares of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModelShares {
    /// Share from models fitted on a sweep.
    pub fitted: f64,
    /// Share from models fitted on a sweep of another GPU.
    pub transferred: f64,
    /// Share from formulas over the device's specification.
    pub analytic: f64,
    /// Share kept as measured on this same GPU.
    pub measured: f64,
    /// Share measured on another GPU and scaled.
    pub scaled: f64,
    /// Share priced by the bytes of unknown ops.
    pub fallback: f64,
    /// Share of launches without any known work.
    pub unknown: f64,
    /// Share outside of the range of the fitted data; part of the shares above.
    pub extrapolated: f64,
}

/// Time of the kernels of one family in a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyTime {
    /// The family.
    pub family: &'static str,
    /// Number of launches.
    pub count: usize,
    /// Total time, milliseconds.
    pub device_ms: f64,
    /// Half-width of the 90 % interval of the median kernel, of the logarithm of its time.
    pub half_width: f64,
    /// Main source of the time.
    pub source: &'static str,
}

/// The launches of one family.
#[derive(Default)]
struct Sum {
    /// Time by source.
    by_source: BTreeMap<&'static str, f64>,
    widths: Vec<f64>,
}

impl ModelShares {
    /// Converts the coverage of one prediction.
    #[must_use]
    pub fn new(coverage: &ModelCoverage) -> ModelShares {
        ModelShares {
            fitted: coverage.fitted,
            transferred: coverage.transferred,
            analytic: coverage.analytic,
            measured: coverage.measured,
            scaled: coverage.scaled,
            fallback: coverage.fallback,
            unknown: coverage.unknown,
            extrapolated: coverage.extrapolated,
        }
    }

    /// Describes the shares in words, without those that are zero.
    #[must_use]
    pub fn text(&self) -> String {
        let parts = [
            (self.fitted, "of device time from fitted models"),
            (self.transferred, "from models of another GPU"),
            (self.analytic, "from the specification"),
            (self.measured, "as measured on this GPU"),
            (self.scaled, "scaled from the GPU recorded on"),
            (self.fallback, "from bytes alone"),
            (self.unknown, "unknown"),
            (self.extrapolated, "out of the fitted range"),
        ];
        let said = parts.iter().filter(|(share, _)| *share >= 0.0005);
        said.map(|(share, words)| format!("{:.1} % {words}", 100.0 * share)).collect::<Vec<_>>().join(", ")
    }
}

/// Half-widths are rounded to nine digits: the last ones differ between machines' logarithms.
const DIGITS: f64 = 1e9;

impl FamilyTime {
    /// All families of a step, most expensive first.
    #[must_use]
    pub fn all(priced: &PricedLaunches) -> Vec<FamilyTime> {
        let mut families: BTreeMap<&'static str, Sum> = BTreeMap::new();
        for (launch, estimate) in priced.launches.iter().zip(&priced.prices.estimates) {
            let sum = families.entry(launch.call.kernel.family()).or_default();
            let ms = estimate.time.as_millis();
            sum.widths.push(estimate.half_width());
            *sum.by_source.entry(estimate.source.name()).or_default() += ms;
        }
        let family = |(family, mut sum): (&'static str, Sum)| {
            sum.widths.sort_by(f64::total_cmp);
            let most = sum.by_source.iter().max_by(|a, b| a.1.total_cmp(b.1));
            FamilyTime {
                family,
                count: sum.widths.len(),
                device_ms: sum.by_source.values().sum(),
                half_width: (sum.widths[sum.widths.len() / 2] * DIGITS).round() / DIGITS,
                source: most.map_or("unknown", |(source, _)| *source),
            }
        };
        let mut all: Vec<FamilyTime> = families.into_iter().map(family).collect();
        all.sort_by(|a, b| b.device_ms.total_cmp(&a.device_ms));
        all
    }
}
