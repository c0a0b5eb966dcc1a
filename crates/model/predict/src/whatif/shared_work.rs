//! Shared work of all changes of one step, done once.

use std::sync::OnceLock;

use steptime_cost::HostCosts;
use steptime_cost::device::{DeviceProfile, DeviceSpec, KnownPrices};
use steptime_graph::{ActivityId, Modules, TiVec};

use steptime_trace::Nanos;

use super::{Pricing, settings};
use crate::error::Error;
use crate::memory;
use crate::predict::{Prediction, device_times, host_side, unprofiled};
use crate::pricing::{self, Knowledge, Launch};
use crate::step::Step;
use crate::time_sources::Kernels;

/// The unchanged side of a step.
pub(crate) struct Base {
    /// Its prediction.
    pub before: Prediction,
    /// Ops and tensors before any change.
    pub step: steptime_step::StepIr,
    /// Facts that rules found about these.
    pub known: steptime_rewrite::FindingsCache,
    /// Modules that ran its ops.
    pub modules: Modules,
    /// Host times of the unchanged step.
    pub host: HostCosts,
    /// Its own host gaps relative to those of the profile in use.
    pub slowness: Option<f64>,
    /// The GPU predicted for, where its specification is known.
    pub spec: Option<DeviceSpec>,
    /// Launches of its ops, and the time measured for each activity; empty where a profile prices all kernels.
    pub launches: Vec<Launch>,
    pub measured: TiVec<ActivityId, Nanos>,
    /// Known prices of calls, by the profile that prices changed kernels.
    pub prices: KnownPrices,
    /// The profile of the GPU recorded on, loaded when something is priced by it.
    own: OnceLock<DeviceProfile>,
}

impl Base {
    /// Prepares a step with a finished prediction.
    pub(crate) fn new(recorded: &Step, pricing: &Pricing<'_>, before: Prediction) -> Base {
        let (host, slowness) = host_side(recorded, pricing.process, &pricing.host);
        let (launches, measured) = match &pricing.kernels {
            Kernels::Device { .. } => (Vec::new(), TiVec::new()),
            Kernels::Measured => {
                let (indices, set) = settings(&pricing.kernels);
                let arguments = &recorded.arguments;
                let was = arguments.launches_by_hand_off(
                    &recorded.graph,
                    &indices,
                    recorded.settings(set),
                    &recorded.ops,
                );
                let mut measured = device_times(recorded, &pricing.kernels).0;
                unprofiled(recorded, pricing.process, &pricing.host, &mut measured);
                (was, measured)
            }
        };
        Base {
            before,
            step: recorded.arguments.editable(&recorded.graph),
            known: steptime_rewrite::FindingsCache::default(),
            modules: recorded.modules(),
            host,
            slowness,
            spec: memory::spec(recorded, &pricing.kernels),
            launches,
            measured,
            prices: KnownPrices::default(),
            own: OnceLock::new(),
        }
    }

    /// Measured device time of ops with unknown arguments; zero where a profile prices all kernels.
    pub(super) fn unknown_time(&self) -> Nanos {
        let unknown = self.launches.iter().filter(|launch| launch.known == Knowledge::Nothing);
        unknown.flat_map(|launch| &launch.activities).map(|&activity| self.measured[activity]).sum()
    }

    /// The profile of the GPU recorded on.
    ///
    /// # Errors
    /// Fails where no such profile ships.
    pub(super) fn own_profile(&self, recorded: &Step) -> Result<&DeviceProfile, Error> {
        if let Some(known) = self.own.get() {
            return Ok(known);
        }
        let named = recorded.graph.device.as_deref();
        let none = || Error::NoOwnProfile { path: recorded.path.clone(), device: named.map(str::to_owned) };
        let profile = pricing::device(named.and_then(pricing::shipped_for).ok_or_else(none)?)?;
        Ok(self.own.get_or_init(|| profile))
    }
}
