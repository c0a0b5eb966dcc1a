//! Models that were fitted on one GPU, asked about another.
//!
//! Models of a family say what measured times are over those of a formula. Formula and features know a GPU by its
//! specification alone, so both can be asked about a GPU that was never measured. How far off that is was found on GPUs that
//! were: each in turn priced by what is known of others.

use serde::{Deserialize, Serialize};
use steptime_aten::KernelCall;
use steptime_trace::Nanos;

use super::context::Context;
use super::estimate::Estimate;
use super::family::{Family, Specified, Worth};
use super::profile::error::HeaderError;
use super::profile::header::{FamilyHeader, Spread};
use super::spec::DeviceSpec;
use super::stage::{self, Estimating, Stage};

/// What models of one GPU are worth on others: half-widths beside those that the models have at home.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The profile whose models are lent.
    pub from: String,
    /// On GPUs of the same architecture.
    pub alike: Spread,
    /// On all others.
    pub other: Spread,
}

impl Transfer {
    /// Reads the text of a `worth.toml`.
    ///
    /// # Errors
    /// A field that is missing, not known, or no half-width.
    pub fn parse(text: &str) -> Result<Transfer, HeaderError> {
        let transfer: Transfer = toml::from_str(text).map_err(|error| HeaderError::Toml(Box::new(error)))?;
        for spread in [&transfer.alike, &transfer.other] {
            for (field, value) in [("own", spread.own), ("shared", spread.shared)] {
                if !(value.is_finite() && value >= 0.0) {
                    return Err(HeaderError::Spread { field, value });
                }
            }
        }
        Ok(transfer)
    }
}

/// Models that a profile has from another GPU's.
#[derive(Debug, Clone)]
pub struct Lent {
    /// The profile that they are from.
    pub from: String,
    /// How much wider intervals are here than where they are from.
    pub wider: Spread,
    /// Whether this GPU is of another architecture than theirs.
    pub other: bool,
    /// What other GPUs have shown of them, as [`fit_across`](super::fit_across) made it; none where the architecture is the same.
    pub corrections: Stages,
    /// What a sweep of this very GPU has shown of them, as [`fit_onto`](super::fit_onto) made it.
    pub layer: Stages,
    /// GPUs that were measured, by which estimates are bounded where this one was not.
    pub references: Vec<Reference>,
}

/// A GPU that kernels were measured on, with the models that a lent profile holds.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The GPU.
    pub spec: DeviceSpec,
    /// What a sweep of it has shown of the models; none of the GPU whose models they are.
    pub layer: Stages,
}

/// Stages of families, with what is told of them.
#[derive(Debug, Clone, Default)]
pub struct Stages {
    /// The families.
    pub families: Vec<FamilyHeader>,
    /// The stages of each.
    pub stages: Vec<Vec<Stage>>,
}

impl Stages {
    /// Those of a family.
    #[must_use]
    pub fn of(&self, family: &str) -> &[Stage] {
        let at = self.families.iter().position(|header| header.name == family);
        at.map_or(&[], |at| &self.stages[at])
    }
}

impl Lent {
    /// What an estimate of lent models is worth here.
    pub(super) fn widened(&self, estimate: Estimate) -> Estimate {
        let (own, shared) = (estimate.own.hypot(self.wider.own), estimate.shared.hypot(self.wider.shared));
        Estimate { own, shared, ..estimate }.transferred()
    }

    /// What a formula of the specification says, where it was seen to hold on architectures other than that of the lent models.
    pub(super) fn specified(
        &self,
        family: &dyn Family,
        call: &KernelCall,
        ctx: &Context,
        spec: &DeviceSpec,
    ) -> Option<Specified> {
        if self.other { family.specified(call, ctx, spec) } else { None }
    }

    /// Estimates of lent models, beside a formula of the specification where one was seen to hold on other architectures.
    pub(super) fn beside_formulas(
        &self,
        family: &'static dyn Family,
        calls: &[(&KernelCall, &Context)],
        spec: &DeviceSpec,
        models: Vec<Estimate>,
    ) -> Vec<Estimate> {
        let blended = |(model, &(call, ctx)): (Estimate, &(&KernelCall, &Context))| {
            let Some(formula) = self.specified(family, call, ctx, spec) else { return model };
            let Specified { us, share, worth } = formula;
            let before = model.time.as_micros().max(1e-3);
            let time = Nanos::from_micros_f64(before * (share * (us / before).ln()).exp());
            let blend = |formula: f64, model: f64| share * formula + (1.0 - share) * model;
            let (own, shared) = worth.map_or((model.own, model.shared), |Worth { own, shared }| {
                (blend(own, model.own), blend(shared, model.shared))
            });
            Estimate { time, own, shared, ..model }
        };
        models.into_iter().zip(calls).map(blended).collect()
    }

    /// Estimates of lent models, as other GPUs have shown that they are off. `again` tells the estimates before in other contexts.
    ///
    /// What was learnt is what work takes: of a kernel that is little more than a launch nothing was shown.
    pub(super) fn corrected(
        &self,
        family: &'static dyn Family,
        calls: &[(&KernelCall, &Context)],
        spec: &DeviceSpec,
        before: Vec<Estimate>,
        again: &Estimating<'_>,
    ) -> Vec<Estimate> {
        let stages = self.corrections.of(family.name());
        if stages.is_empty() {
            return before;
        }
        let after = stage::correct(stages, family, calls, spec, before.clone(), again);
        let blended = |(before, after): (Estimate, Estimate)| {
            let us = before.time.as_micros().max(1e-3);
            let work = (1.0 - LAUNCHES * spec.launch.floor_us / us).clamp(0.0, 1.0);
            let ratio = (after.time.as_micros().max(1e-3) / us).ln();
            let blend = |new: f64, old: f64| work * new + (1.0 - work) * old;
            let time = Nanos::from_micros_f64(us * (work * ratio).exp());
            let (own, shared) = (blend(after.own, before.own), blend(after.shared, before.shared));
            Estimate { time, own, shared, ..after }.transferred()
        };
        before.into_iter().zip(after).map(blended).collect()
    }
}

/// So many times the shortest kernel's time are a launch, whatever it works on.
const LAUNCHES: f64 = 2.0;
