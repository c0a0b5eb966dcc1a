//! Models that were fitted on one GPU, evaluated for another.
//!
//! Models of a family predict the ratio of measured times to those of a formula. Formula and features depend on a GPU by its
//! specification alone, so both can be evaluated for a GPU without measurements. The error of that was found on measured
//! GPUs: each in turn was priced by the models of others.

use serde::{Deserialize, Serialize};
use steptime_aten::KernelCall;
use steptime_trace::Nanos;

use super::context::Context;
use super::correction::{self, Estimator, Stage};
use super::estimate::Estimate;
use super::family::{Family, HalfWidths, SpecEstimate};
use super::profile::error::HeaderError;
use super::profile::header::{FamilyHeader, Spread};
use super::spec::DeviceSpec;

/// Accuracy of one GPU's models on others: half-widths in addition to those of the models on their own GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Profile whose models are transferred.
    pub from: String,
    /// Half-widths on GPUs of the same architecture.
    pub alike: Spread,
    /// Half-widths on all others.
    pub other: Spread,
}

impl Transfer {
    /// Reads the text of a `worth.toml`.
    ///
    /// # Errors
    /// A field that is missing or unknown, or a value that is not a half-width.
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

/// Models transferred from another GPU's profile.
#[derive(Debug, Clone)]
pub struct TransferredModels {
    /// Profile that they are from.
    pub from: String,
    /// Additional half-widths of intervals on this GPU.
    pub wider: Spread,
    /// Whether this GPU has another architecture than theirs.
    pub other: bool,
    /// Corrections from other GPUs, made by [`fit_across`](super::fit_across); none if the architecture is the same.
    pub corrections: Stages,
    /// Corrections from a sweep of this GPU, made by [`fit_onto`](super::fit_onto).
    pub layer: Stages,
    /// Measured GPUs, which bound the estimates if this one has no measurements.
    pub references: Vec<Reference>,
}

/// A GPU with measured kernels, and the corrections of the transferred models on it.
#[derive(Debug, Clone)]
pub struct Reference {
    pub spec: DeviceSpec,
    /// Corrections of the models from its sweep; none for the GPU whose models they are.
    pub layer: Stages,
}

/// Stages of families, with their headers.
#[derive(Debug, Clone, Default)]
pub struct Stages {
    pub families: Vec<FamilyHeader>,
    /// Stages of each family.
    pub stages: Vec<Vec<Stage>>,
}

impl Stages {
    /// Returns the stages of a family.
    #[must_use]
    pub fn family(&self, family: &str) -> &[Stage] {
        let at = self.families.iter().position(|header| header.name == family);
        at.map_or(&[], |at| &self.stages[at])
    }
}

impl TransferredModels {
    /// Returns an estimate of transferred models with the wider interval of this GPU.
    pub(super) fn widened(&self, estimate: Estimate) -> Estimate {
        let (own, shared) = (estimate.own.hypot(self.wider.own), estimate.shared.hypot(self.wider.shared));
        Estimate { own, shared, ..estimate }.transferred()
    }

    /// Returns the estimate by a formula of the specification, if the models are from another architecture.
    pub(super) fn specified(
        &self,
        family: &dyn Family,
        call: &KernelCall,
        ctx: &Context,
        spec: &DeviceSpec,
    ) -> Option<SpecEstimate> {
        if self.other { family.specified(call, ctx, spec) } else { None }
    }

    /// Blends estimates of transferred models with those of formulas of the specification that were observed to hold on other architectures.
    pub(super) fn beside_formulas(
        &self,
        family: &'static dyn Family,
        calls: &[(&KernelCall, &Context)],
        spec: &DeviceSpec,
        models: Vec<Estimate>,
    ) -> Vec<Estimate> {
        let blended = |(model, &(call, ctx)): (Estimate, &(&KernelCall, &Context))| {
            let Some(formula) = self.specified(family, call, ctx, spec) else { return model };
            let SpecEstimate { us, share, worth } = formula;
            let before = model.time.as_micros().max(1e-3);
            let time = Nanos::from_micros_f64(before * (share * (us / before).ln()).exp());
            let blend = |formula: f64, model: f64| share * formula + (1.0 - share) * model;
            let (own, shared) = worth.map_or((model.own, model.shared), |HalfWidths { own, shared }| {
                (blend(own, model.own), blend(shared, model.shared))
            });
            Estimate { time, own, shared, ..model }
        };
        models.into_iter().zip(calls).map(blended).collect()
    }

    /// Corrects estimates of transferred models by their errors on other GPUs. `again` returns the earlier estimates in other contexts.
    ///
    /// The corrections were learnt for the work: they are not applied to a kernel that is little more than a launch.
    pub(super) fn corrected(
        &self,
        family: &'static dyn Family,
        calls: &[(&KernelCall, &Context)],
        spec: &DeviceSpec,
        before: Vec<Estimate>,
        again: &Estimator<'_>,
    ) -> Vec<Estimate> {
        let stages = self.corrections.family(family.name());
        if stages.is_empty() {
            return before;
        }
        let after = correction::correct(stages, family, calls, spec, before.clone(), again);
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

/// Multiple of the shortest kernel's time that counts as a launch, whatever the kernel works on.
const LAUNCHES: f64 = 2.0;
