//! Corrects a profile by a later sweep if the rows of its first fit are gone.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::correction::{HeldOutPart, Row};
use super::error::FitError;
use super::peaks::f8_tflop_s;
use super::{FitOptions, by_family, correction, family};
use crate::device::error::Error;
use crate::device::observation::Observation;
use crate::device::profile::header::{FamilyHeader, Header, VERSION};
use crate::device::profile::{DeviceProfile, FamilyModels};

/// Fits on top of a profile: families that it has are corrected by a further stage if the rows show a difference, others are fitted
/// as usual. Calls unlike all rows keep their earlier prices. The profile's specification does not change,
/// since features are relative to it, except for a missing rate of 8-bit floats; the sweep's metadata are
/// added under `later`.
///
/// For transferred models the result has the corrections from sweeps of this GPU, and the name of the profile that they correct; families that the
/// lender lacks keep their formulas.
///
/// # Errors
///
/// Those of [`fit`](super::fit).
pub fn fit_onto(
    observations: &[Observation],
    mut profile: DeviceProfile,
    options: &FitOptions,
) -> Result<DeviceProfile, Error> {
    if profile.spec.peak.i8_tflop_s <= 0.0 {
        profile.spec.peak.i8_tflop_s = f8_tflop_s(observations).unwrap_or(0.0);
    }
    let spec = profile.spec.clone();
    let by_family = by_family(observations)?;
    let done = std::sync::atomic::AtomicUsize::new(0);
    let of = by_family.len();
    let mut order: Vec<(&str, Vec<&Observation>)> = by_family.into_iter().collect();
    order.sort_by_key(|(name, rows)| (std::cmp::Reverse(rows.len()), *name));
    let fitted: Vec<Result<Fit, FitError>> = order
        .par_iter()
        .with_max_len(1)
        .map(|(name, rows)| {
            let fitted = match profile.family(name) {
                Some(_) => {
                    let rows: Vec<Row> =
                        rows.iter().map(|of| Row { of, profile: &profile, gpu: 0, formula: None }).collect();
                    correction::fit(&rows, HeldOutPart::Cases, options)
                        .map(|stage| Fit::Stage(name, stage.map(Box::new)))
                }
                None => family::fit(rows, &spec, options).map(|fitted| Fit::Family(Box::new(fitted))),
            };
            let count = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            (options.progress)(name, count, of);
            fitted.map_err(|source| FitError::Family { family: (*name).to_owned(), source })
        })
        .collect();
    let fitted = fitted.into_iter().collect::<Result<Vec<_>, _>>()?;

    let mut sweep = profile.sweep.clone();
    let later: Vec<(String, String)> =
        options.sweep.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let number =
        1 + (1..).take_while(|at| sweep.keys().any(|key| key.starts_with(&format!("later{at}_")))).count();
    sweep.extend(later.into_iter().map(|(key, value)| (format!("later{number}_{key}"), value)));
    let (device, unfitted) = (spec, profile.unfitted.clone());
    let onto = profile.transferred.as_ref().map(|transferred| transferred.from.clone());
    let mut families: BTreeMap<String, _> = own_parts(profile)
        .into_iter()
        .map(|(header, models)| (header.name.clone(), (header, models)))
        .collect();
    for fitted in fitted {
        match fitted {
            Fit::Family(fitted) => {
                families.insert(fitted.header.name.clone(), (fitted.header, fitted.models));
            }
            Fit::Stage(name, Some(fitted)) => {
                let (told, stage) = *fitted;
                if let Some((header, models)) = families.get_mut(name) {
                    header.stages.push(told);
                    models.stages.push(stage);
                }
            }
            Fit::Stage(_, None) => {}
        }
    }
    if onto.is_some() {
        families.retain(|_, (header, _)| !header.stages.is_empty());
    }
    let (families, models) = families.into_values().unzip();
    let header =
        Header { version: VERSION, name: options.name.clone(), device, unfitted, sweep, onto, families };
    Ok(DeviceProfile::new(header, models).map_err(FitError::from)?)
}

/// A profile's own parts: all of it; for transferred models, their headers, and the stages of this GPU's own sweeps.
fn own_parts(profile: DeviceProfile) -> Vec<(FamilyHeader, FamilyModels)> {
    let Some(transferred) = profile.transferred.clone() else { return profile.into_families() };
    let of_layer = |(header, _): (FamilyHeader, FamilyModels)| {
        let told = transferred.layer.families.iter().find(|told| told.name == header.name);
        let stages = transferred.layer.family(&header.name).to_vec();
        told.map(|told| (told.clone(), FamilyModels { stages, ..FamilyModels::default() })).unwrap_or_else(
            || {
                let header =
                    FamilyHeader { stages: Vec::new(), trees: 0, variants: BTreeMap::new(), ..header };
                (header, FamilyModels::default())
            },
        )
    };
    profile.into_families().into_iter().map(of_layer).collect()
}

enum Fit<'a> {
    Family(Box<family::FamilyFit>),
    Stage(&'a str, Option<Box<correction::StageFit>>),
}
