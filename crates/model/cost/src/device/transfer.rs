//! Models that were fitted on one GPU, asked about another.
//!
//! Models of a family say what measured times are over those of a formula. Formula and features know a GPU by its
//! specification alone, so both can be asked about a GPU that was never measured. How far off that is was found on GPUs that
//! were: each in turn priced by what is known of others.

use serde::{Deserialize, Serialize};
use steptime_aten::KernelCall;
use steptime_trace::Nanos;

use super::constants::Constants;
use super::context::Context;
use super::estimate::Estimate;
use super::family::Family;
use super::profile::DeviceProfile;
use super::profile::error::HeaderError;
use super::profile::header::Spread;
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
    /// What other GPUs have shown of them, as [`fit_across`](super::fit_across) made it.
    pub corrections: Option<DeviceProfile>,
    /// What a sweep of this very GPU has shown of them, as [`fit_onto`](super::fit_onto) made it.
    pub layer: Option<DeviceProfile>,
}

impl Lent {
    /// What an estimate of lent models is worth here.
    pub(super) fn widened(&self, estimate: Estimate) -> Estimate {
        let (own, shared) = (estimate.own.hypot(self.wider.own), estimate.shared.hypot(self.wider.shared));
        Estimate { own, shared, ..estimate }.transferred()
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
        let stages = stages(self.corrections.as_ref(), family);
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

    /// The same, as a sweep of this very GPU has shown.
    pub(super) fn swept(
        &self,
        family: &'static dyn Family,
        calls: &[(&KernelCall, &Context)],
        spec: &DeviceSpec,
        before: Vec<Estimate>,
        again: &Estimating<'_>,
    ) -> Vec<Estimate> {
        match stages(self.layer.as_ref(), family) {
            [] => before,
            stages => stage::correct(stages, family, calls, spec, before, again),
        }
    }
}

/// The stages of a family.
fn stages<'a>(of: Option<&'a DeviceProfile>, family: &dyn Family) -> &'a [Stage] {
    let known = of.and_then(|profile| profile.family(family.name()));
    known.map_or(&[], |(_, models)| &models.stages)
}

/// So many times the shortest kernel's time are a launch, whatever it works on.
const LAUNCHES: f64 = 2.0;

impl DeviceProfile {
    /// A specification with the models of this profile. A GPU of the same architecture takes them as they are: what others have
    /// shown is of other units and other kernels. What the specification's own profile holds of a sweep comes last.
    #[must_use]
    pub fn lend(
        self,
        to: DeviceProfile,
        worth: Transfer,
        corrections: Option<DeviceProfile>,
    ) -> DeviceProfile {
        let alike = self.spec.architecture == to.spec.architecture;
        let corrections = corrections.filter(|_| !alike);
        let slower = self.spec.clock_mhz / to.spec.clock_mhz;
        let layer = to.onto.is_some().then(|| to.clone());
        let mut to = to.with_models(self.into_families());
        if to.spec.constants == Constants::default() {
            to.spec.constants = Constants::default().slower(slower);
        }
        let Transfer { from, alike: like, other } = worth;
        let wider = if alike { like } else { other };
        to.lent = Some(Box::new(Lent { from, wider, corrections, layer }));
        to
    }

    /// Whether kernels were measured on this very GPU.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        match &self.lent {
            Some(lent) => lent.layer.is_some(),
            None => !self.families().is_empty(),
        }
    }
}
