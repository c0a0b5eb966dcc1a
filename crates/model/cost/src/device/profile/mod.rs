//! A device profile: the fit to one GPU, in memory and as a folder.
//!
//! The folder holds `profile.toml`, for people to read and compare, and `models.bin.zst` with the trees and
//! networks. A profile of a specification alone has no second file.

mod codec;
pub mod error;
pub mod file;
mod folder;
mod format;
pub mod header;
mod models;
mod models_file;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::correction::{self, Stage};
use super::families;
use super::family::Family;
use super::learn::conformal::Interval;
use super::learn::descent::Network;
use super::learn::trees::Trees;
use super::spec::DeviceSpec;
use super::transfer::TransferredModels;
use error::ModelsError;
use header::{FamilyHeader, Header, Spread, VERSION};

/// Specification and models of a GPU.
#[derive(Debug, Clone)]
pub struct DeviceProfile {
    /// Short name of the profile, such as `h200`.
    pub name: String,
    pub spec: DeviceSpec,
    /// Errors of formulas with nothing fitted.
    pub unfitted: Spread,
    /// Metadata of the sweep: versions, dates, numbers of rows.
    pub sweep: BTreeMap<String, String>,
    /// Profile whose models its stages correct, if it has no models of its own.
    pub onto: Option<String>,
    /// Data of models transferred from another GPU, with their accuracy on this one.
    pub transferred: Option<Box<TransferredModels>>,
    families: Vec<FamilyHeader>,
    models: Vec<FamilyModels>,
    place: FxHashMap<String, usize>,
}

/// Learnt models of a family.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FamilyModels {
    /// Trees that correct the calibrated formula: the logarithm of the remaining ratio.
    pub trees: Option<Trees>,
    /// Published kind of network over sizes: the logarithm of microseconds.
    pub network: Option<Network>,
    /// Intervals of the paper's, the analytic and the learnt model, in that order.
    pub intervals: [Option<Interval>; 3],
    /// Corrections from later sweeps, in their order.
    pub stages: Vec<Stage>,
}

impl DeviceProfile {
    /// Makes a profile from a header and the models of its families, in the same order.
    ///
    /// # Errors
    ///
    /// The first inconsistency.
    pub fn new(header: Header, models: Vec<FamilyModels>) -> Result<DeviceProfile, ModelsError> {
        if header.families.len() != models.len() {
            return Err(ModelsError::Families { families: header.families.len(), models: models.len() });
        }
        for (family, models) in header.families.iter().zip(&models) {
            let name = || family.name.clone();
            let known = families::named(&family.name).ok_or_else(|| ModelsError::UnknownFamily(name()))?;
            let names = family.features.iter().map(|(name, ..)| name.as_str());
            if !names.eq(known.feature_names().iter().copied()) {
                return Err(ModelsError::Features(name()));
            }
            let columns = family.features.len();
            let trees = models.trees.iter().chain(models.intervals.iter().flatten().map(|i| &i.scale));
            if trees.into_iter().any(|trees| trees.features() != columns) {
                return Err(ModelsError::TreeColumns(name()));
            }
            check_stages(known, family, &models.stages)?;
        }
        let Header { version: _, name, device: spec, unfitted, sweep, onto, families } = header;
        let place = families.iter().enumerate().map(|(at, family)| (family.name.clone(), at)).collect();
        Ok(DeviceProfile { name, spec, unfitted, sweep, onto, transferred: None, families, models, place })
    }

    /// Returns this profile's specification with other models, which are consistent with each other.
    pub(super) fn with_models(self, families: Vec<(FamilyHeader, FamilyModels)>) -> DeviceProfile {
        let (families, models): (Vec<_>, Vec<_>) = families.into_iter().unzip();
        let place = families.iter().enumerate().map(|(at, family)| (family.name.clone(), at)).collect();
        DeviceProfile { families, models, place, ..self }
    }

    /// Splits into the header and the models of every family.
    #[must_use]
    pub fn into_families(self) -> Vec<(FamilyHeader, FamilyModels)> {
        self.families.into_iter().zip(self.models).collect()
    }

    /// Returns the fitted families, by name; none in a profile of a specification alone.
    #[must_use]
    pub fn families(&self) -> &[FamilyHeader] {
        &self.families
    }

    /// Returns the fit of a family.
    #[must_use]
    pub fn family(&self, name: &str) -> Option<(&FamilyHeader, &FamilyModels)> {
        let &at = self.place.get(name)?;
        Some((&self.families[at], &self.models[at]))
    }

    /// Returns the content of the readable file.
    fn header(&self) -> Header {
        let (unfitted, sweep, families) = (self.unfitted.clone(), self.sweep.clone(), self.families.clone());
        let onto = self.onto.clone();
        Header {
            version: VERSION,
            name: self.name.clone(),
            device: self.spec.clone(),
            unfitted,
            sweep,
            onto,
            families,
        }
    }
}

/// Whether stages have the features that this steptime computes: all of them, or the first ones, as features are only appended.
fn check_stages(known: &dyn Family, header: &FamilyHeader, stages: &[Stage]) -> Result<(), ModelsError> {
    let name = || header.name.clone();
    if header.stages.len() != stages.len() {
        return Err(ModelsError::Stages {
            family: name(),
            header: header.stages.len(),
            models: stages.len(),
        });
    }
    for (told, stage) in header.stages.iter().zip(stages) {
        let known_then = correction::names(known).take(told.features.len());
        if !told.features.iter().map(String::as_str).eq(known_then) {
            return Err(ModelsError::StageFeatures(name()));
        }
        let columns = told.features.len();
        let wrong = stage.trees.features() != columns || stage.interval.scale.features() != columns;
        if wrong || stage.kinds.values().any(|kind| kind.ranges.len() != columns) {
            return Err(ModelsError::StageColumns(name()));
        }
    }
    Ok(())
}
