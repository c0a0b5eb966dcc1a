//! Fits a profile to measured kernels.

pub mod cache;
mod correction;
pub mod error;
mod family;
mod host;
mod later_sweep;
mod network;
mod other_gpus;
pub mod peaks;
mod signature;

use std::collections::BTreeMap;

use rayon::prelude::*;
use steptime_aten::Kernel;

use super::context::Setting;
use super::error::Error;
use super::families;
use super::learn::score::quantile;
use super::observation::Observation;
use super::profile::header::{Header, Spread, VERSION};
use super::profile::{DeviceProfile, FamilyModels};
use super::spec::DeviceSpec;

pub use error::FitError;
pub use host::without_host;
pub use later_sweep::fit_onto;
pub use network::Search;
pub use other_gpus::{MeasuredGpu, fit_across};
pub use signature::without;

/// Least number of rows of a family inside steps: fewer are of too few models to show the difference.
const STEP_ROWS: usize = 300;

/// Options of a fit.
pub struct FitOptions<'a> {
    /// Seed of folds, trees and networks: the same seed and rows give the same profile.
    pub seed: u64,
    /// Folds of the cross-validation.
    pub folds: u8,
    /// Networks to try for the paper's models.
    pub search: Search,
    /// Short name of the profile.
    pub name: String,
    /// Metadata of the sweep to record in the profile.
    pub sweep: BTreeMap<String, String>,
    /// Called when a family is done, with its name, the number of finished ones, and the number of all. Called from several threads.
    pub progress: &'a (dyn Fn(&str, usize, usize) + Sync),
}

impl Default for FitOptions<'_> {
    fn default() -> Self {
        FitOptions {
            seed: 0,
            folds: 5,
            search: Search::Shipped,
            name: "example".into(),
            sweep: BTreeMap::new(),
            progress: &|_, _, _| {},
        }
    }
}

/// Fits a profile: every family's models, their scores on held-out rows, and intervals.
///
/// # Errors
///
/// No observations, a time that is not positive, an impossible specification.
pub fn fit(
    observations: &[Observation],
    spec: &DeviceSpec,
    options: &FitOptions,
) -> Result<DeviceProfile, Error> {
    spec.check().map_err(|source| Error::Spec { name: spec.name.clone(), source })?;
    let by_family = by_family(observations)?;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let of = by_family.len();
    // Large families first: they determine the end of the last one.
    let mut order: Vec<(&str, Vec<&Observation>)> = by_family.into_iter().collect();
    order.sort_by_key(|(name, rows)| (std::cmp::Reverse(rows.len()), *name));
    let fitted: Vec<Result<family::FamilyFit, FitError>> = order
        .par_iter()
        .with_max_len(1)
        .map(|(name, rows)| {
            let fitted = family::fit(rows, spec, options)
                .map_err(|source| FitError::Family { family: (*name).to_owned(), source });
            let count = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            (options.progress)(name, count, of);
            fitted
        })
        .collect();
    let mut fitted = fitted.into_iter().collect::<Result<Vec<_>, _>>()?;
    fitted.sort_by(|a, b| a.header.name.cmp(&b.header.name));
    let unfitted = unfitted(&fitted);
    let (families, models): (Vec<_>, Vec<FamilyModels>) =
        fitted.into_iter().map(|fitted| (fitted.header, fitted.models)).unzip();
    let (name, device, sweep) = (options.name.clone(), spec.clone(), options.sweep.clone());
    let header = Header { version: VERSION, name, device, unfitted, sweep, onto: None, families };
    Ok(DeviceProfile::new(header, models).map_err(FitError::from)?)
}

/// Returns the rows to learn from, by family.
///
/// # Errors
///
/// No rows at all, or a time that is not positive.
fn by_family(observations: &[Observation]) -> Result<BTreeMap<&'static str, Vec<&Observation>>, FitError> {
    if observations.is_empty() {
        return Err(FitError::NoRows);
    }
    if let Some(wrong) = observations.iter().find(|row| row.time.0 <= 0) {
        return Err(FitError::Time { case: wrong.case, op: wrong.op.clone(), time: wrong.time });
    }
    let mut by_family: BTreeMap<&'static str, Vec<&Observation>> = BTreeMap::new();
    // Calls priced in parts are learnt from rows of one part, and rows of unknown ops are left out.
    let learnt = |row: &&Observation| row.call.parts().is_none() && row.call.kernel != Kernel::Unknown;
    for row in observations.iter().filter(learnt) {
        by_family.entry(families::find(&row.call.kernel).name()).or_default().push(row);
    }
    for rows in by_family.values_mut() {
        let in_step = |row: &Observation| row.ctx.setting == Setting::Step;
        if rows.iter().filter(|row| in_step(row)).count() < STEP_ROWS {
            rows.retain(|row| !in_step(row));
        }
    }
    by_family.retain(|_, rows| !rows.is_empty());
    Ok(by_family)
}

/// Error of the formulas with nothing fitted.
fn unfitted(fitted: &[family::FamilyFit]) -> Spread {
    let medians: Vec<f64> = fitted.iter().map(|fitted| quantile(&fitted.formula, 0.5)).collect();
    let own = fitted
        .iter()
        .zip(&medians)
        .flat_map(|(fitted, median)| fitted.formula.iter().map(move |residual| (residual - median).abs()));
    let off: Vec<f64> = medians.iter().map(|median| median.abs()).collect();
    Spread {
        own: quantile(&own.collect::<Vec<f64>>(), 0.9),
        shared: quantile(&off, 0.9),
        source: "formulas with nothing fitted, against this sweep: 90 % of rows, 90 % of families".into(),
    }
}
