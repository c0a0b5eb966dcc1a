//! Costs of a changed step on one GPU and one host.

use steptime_cost::{Demands, HostCosts, PricedGraph};
use steptime_graph::{ActivityId, TiVec};
use steptime_step::Peak;
use steptime_trace::Nanos;

use super::device_side::DeviceSide;
use super::{Base, ModifiedStep, Pricing, added_host_time, host_side};
use crate::doubt::{Doubt, arguments, emulated};
use crate::error::Error;
use crate::memory;
use crate::step::Step;
use crate::time_sources::Host;
use crate::uncertainty::uncertainty;

/// The costs of a changed step.
pub(crate) struct PricedStep {
    pub(super) device: DeviceSide,
    host: HostCosts,
    pub(crate) peak: Option<Peak>,
    /// Doubt about types that the GPU has no units for.
    emulated: Option<Doubt>,
}

impl PricedStep {
    pub(crate) fn price(
        recorded: &Step,
        pricing: &Pricing<'_>,
        base: &Base,
        edited: &ModifiedStep,
    ) -> Result<PricedStep, Error> {
        let device = DeviceSide::price(recorded, pricing, base, edited)?;
        let peak = memory::peak_of_changed(recorded, base.spec.as_ref(), &edited.step, edited.flat());
        let mut host = host_side::price(recorded, pricing, edited, base)?;
        if edited.is_changed() && !matches!(pricing.host, Host::Profile(_)) {
            host.spread = host.spread.hypot(uncertainty().host.another_run);
        }
        added_host_time::add(&edited.step, &edited.scheduled, base.slowness.unwrap_or(1.0), &mut host);
        let emulated = emulated::doubt(&pricing.kernels, &edited.launches);
        Ok(PricedStep { device, host, peak, emulated })
    }

    /// Times of activities with the half-width of their sum, and the host's costs.
    pub(crate) fn into_sides(self) -> (TiVec<ActivityId, Nanos>, f64, HostCosts) {
        (self.device.durations, self.device.spread, self.host)
    }

    /// Demands of kernels that share the GPU; `None` where each takes its own time.
    pub(crate) fn demands(&self) -> Option<&Demands> {
        self.device.demands.as_ref()
    }

    /// Half-width of all device time together, relative.
    pub(crate) fn device_spread(&self) -> f64 {
        self.device.spread
    }

    /// The scheduled step with its costs, with host times scaled by `host_times` where given.
    pub(crate) fn priced<'e>(
        &self,
        edited: &'e ModifiedStep,
        host_times: Option<f64>,
    ) -> Result<PricedGraph<'e>, Error> {
        let mut host = self.host.clone();
        if let Some(times) = host_times {
            host_side::slow(&mut host, times)?;
        }
        let durations = self.device.durations.clone();
        Ok(PricedGraph {
            graph: &edited.scheduled.graph,
            host,
            durations,
            demands: self.device.demands.clone(),
        })
    }

    /// Doubts about a changed step of this time: those about the step before, those from rules, and those from ops with unknown
    /// arguments. Doubts about memory are those of the changed step itself.
    pub(crate) fn doubts(&self, base: &Base, edited: &ModifiedStep, step: Nanos) -> Vec<Doubt> {
        let of_before = ["memory", "emulated"];
        let known = base.before.doubts.iter().filter(|doubt| !of_before.contains(&doubt.kind));
        let unknown = base.unknown_time();
        let [was, is] = [&base.measured, &self.device.durations]
            .map(|times| times.iter().copied().sum::<Nanos>() - unknown);
        let known = known.chain(&edited.doubts).chain(&self.emulated).cloned();
        known.chain(arguments::doubt(unknown, [was, is], step)).collect()
    }
}
