//! A specification with models transferred from another GPU.

use super::constants::Constants;
use super::families;
use super::family::SpecEstimate;
use super::observation::Observation;
use super::profile::DeviceProfile;
use super::spec::DeviceSpec;
use super::transfer::{Reference, Stages, Transfer, TransferredModels};

impl DeviceProfile {
    /// Returns `to`'s specification with the models of this profile. A GPU of the same architecture takes them without `corrections`: those are
    /// from other units and other kernels. Corrections from sweeps of `to` itself are applied last.
    #[must_use]
    pub fn transfer(
        self,
        to: DeviceProfile,
        worth: Transfer,
        corrections: Option<DeviceProfile>,
    ) -> DeviceProfile {
        let alike = self.spec.architecture == to.spec.architecture;
        let corrections = corrections.filter(|_| !alike).map(stages).unwrap_or_default();
        let slower = self.spec.clock_mhz / to.spec.clock_mhz;
        let lender = self.spec.clone();
        let layer = if to.onto.is_some() { stages(to.clone()) } else { Stages::default() };
        let mut to = to.with_models(self.into_families());
        if to.spec.constants == Constants::default() {
            to.spec.constants = Constants::default().slower(slower);
        }
        if layer.families.is_empty() {
            to.spec.transfer = to.spec.transfer.in_host_of(&lender.transfer);
        }
        let Transfer { from, alike: like, other } = worth;
        let wider = if alike { like } else { other };
        to.transferred = Some(Box::new(TransferredModels {
            from,
            wider,
            other: !alike,
            corrections,
            layer,
            references: Vec::new(),
        }));
        to
    }

    /// Returns this profile with its estimates bounded by those for measured GPUs: the one whose models it has, and those
    /// of `layers` whose sweeps corrected the same models. A GPU with a sweep of its own does not change.
    #[must_use]
    pub fn bounded(
        mut self,
        lender: DeviceSpec,
        layers: impl IntoIterator<Item = DeviceProfile>,
    ) -> DeviceProfile {
        if let Some(transferred) =
            self.transferred.as_mut().filter(|transferred| transferred.layer.families.is_empty())
        {
            let layers = layers.into_iter().filter(|layer| layer.onto.as_ref() == Some(&transferred.from));
            let measured = layers.map(|layer| Reference { spec: layer.spec.clone(), layer: stages(layer) });
            transferred.references = std::iter::once(Reference { spec: lender, layer: Stages::default() })
                .chain(measured)
                .collect();
        }
        self
    }

    /// Returns this profile with transferred models alone, without formulas of the specification.
    #[must_use]
    pub(super) fn without_formulas(mut self) -> DeviceProfile {
        if let Some(transferred) = &mut self.transferred {
            transferred.other = false;
        }
        self
    }

    /// Returns the estimate of a measured call by a formula of the specification, next to transferred models.
    #[must_use]
    pub(super) fn formula(&self, of: &Observation) -> Option<SpecEstimate> {
        let family = families::find(&of.call.kernel);
        self.transferred.as_ref()?.specified(family, &of.call, &of.ctx, &self.spec)
    }

    /// Whether kernels were measured on this GPU.
    #[must_use]
    pub fn is_swept(&self) -> bool {
        match &self.transferred {
            Some(transferred) => !transferred.layer.families.is_empty(),
            None => !self.families().is_empty(),
        }
    }
}

/// Takes the stages out of a profile's families.
fn stages(of: DeviceProfile) -> Stages {
    let (families, stages) =
        of.into_families().into_iter().map(|(header, models)| (header, models.stages)).unzip();
    Stages { families, stages }
}
