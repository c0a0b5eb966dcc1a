//! Corrections of one GPU's models, fitted to measurements on many other GPUs.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::correction::{HeldOutPart, Row};
use super::error::FitError;
use super::{FitOptions, by_family, correction};
use crate::device::error::Error;
use crate::device::observation::Observation;
use crate::device::profile::header::{Header, VERSION};
use crate::device::profile::{DeviceProfile, FamilyModels};

/// A GPU with measured kernels.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredGpu<'a> {
    /// Its specification, with the models transferred to it.
    pub profile: &'a DeviceProfile,
    /// Measured calls.
    pub rows: &'a [Observation],
}

/// Fits corrections of transferred models for GPUs without measurements: one stage per family, judged on each GPU with a fit on the others.
/// The result has stages alone; `lender` is the profile whose models are transferred.
///
/// # Errors
///
/// Those of [`fit`](super::fit).
pub fn fit_across(
    gpus: &[MeasuredGpu<'_>],
    lender: &DeviceProfile,
    options: &FitOptions,
) -> Result<DeviceProfile, Error> {
    // The stages correct models, without the formulas next to them.
    let models: Vec<DeviceProfile> = gpus.iter().map(|gpu| gpu.profile.clone().without_formulas()).collect();
    let mut by_family_of_all: BTreeMap<&'static str, Vec<Row>> = BTreeMap::new();
    for ((gpu, MeasuredGpu { profile, rows }), models) in (0..).zip(gpus).zip(&models) {
        for (family, rows) in by_family(rows)? {
            let row = |of| Row { of, profile: models, gpu, formula: profile.formula(of) };
            let rows = rows.into_iter().map(row);
            by_family_of_all.entry(family).or_default().extend(rows);
        }
    }
    let of = by_family_of_all.len();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let fitted: Vec<Result<_, FitError>> = by_family_of_all
        .par_iter()
        .map(|(&name, rows)| {
            let fitted = correction::fit(rows, HeldOutPart::Gpus, options)
                .map_err(|source| FitError::Family { family: name.to_owned(), source });
            let count = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            (options.progress)(name, count, of);
            fitted.map(|stage| Some((name, stage?)))
        })
        .collect();
    let mut families = Vec::new();
    let mut models = Vec::new();
    for fitted in fitted {
        let Some((name, (told, stage))) = fitted? else { continue };
        let Some((header, _)) = lender.family(name) else { continue };
        let mut header = header.clone();
        header.stages = vec![told];
        header.trees = 0;
        families.push(header);
        models.push(FamilyModels { stages: vec![stage], ..FamilyModels::default() });
    }
    let (name, sweep) = (options.name.clone(), options.sweep.clone());
    let (device, unfitted) = (lender.spec.clone(), lender.unfitted.clone());
    let header = Header { version: VERSION, name, device, unfitted, sweep, onto: None, families };
    Ok(DeviceProfile::new(header, models).map_err(FitError::from)?)
}
