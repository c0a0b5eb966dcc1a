//! What all changes of one step share: computed once, whatever is asked of the step afterwards.

use std::sync::OnceLock;

use steptime_cost::HostCosts;
use steptime_cost::device::{DeviceProfile, DeviceSpec, KnownPrices};
use steptime_graph::{ActivityId, Modules, TiVec};
use steptime_step as edit;
use steptime_trace::Nanos;

use super::{Pricing, settings};
use crate::device::{self, Known, Launch};
use crate::error::Error;
use crate::memory;
use crate::predict::{Prediction, device_times, host_side, unprofiled};
use crate::sources::Kernels;
use crate::step::Step;

/// The unchanged side of a step.
pub(crate) struct Base {
    /// Its prediction.
    pub before: Prediction,
    /// Its ops and tensors, as they are before any change.
    pub step: edit::Step,
    /// What rules found of these.
    pub known: steptime_rewrite::Known,
    /// Which modules ran its ops.
    pub modules: Modules,
    /// Its host times ...
    pub host: HostCosts,
    /// ... and its own gaps over those of the profile in use.
    pub slowness: Option<f64>,
    /// The GPU predicted for, where its specification is known.
    pub spec: Option<DeviceSpec>,
    /// What its ops launch, and the time measured for each activity; nothing where a profile prices all.
    pub launches: Vec<Launch>,
    pub measured: TiVec<ActivityId, Nanos>,
    /// What calls were found to cost, by the profile that what changed is priced by.
    pub prices: KnownPrices,
    /// The profile of the GPU recorded on, once something is priced by it.
    own: OnceLock<DeviceProfile>,
}

impl Base {
    /// Of a step whose prediction is there.
    pub(crate) fn of(recorded: &Step, pricing: &Pricing<'_>, before: Prediction) -> Base {
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
            known: steptime_rewrite::Known::default(),
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

    /// Measured device time of ops whose arguments are not known; none where a profile prices all.
    pub(super) fn unknown_time(&self) -> Nanos {
        let unknown = self.launches.iter().filter(|launch| launch.known == Known::Nothing);
        unknown.flat_map(|launch| &launch.activities).map(|&activity| self.measured[activity]).sum()
    }

    /// The profile of the GPU that was recorded on.
    ///
    /// # Errors
    /// Where none ships.
    pub(super) fn own_profile(&self, recorded: &Step) -> Result<&DeviceProfile, Error> {
        if let Some(known) = self.own.get() {
            return Ok(known);
        }
        let named = recorded.graph.device.as_deref();
        let none = || Error::NoOwnProfile { path: recorded.path.clone(), device: named.map(str::to_owned) };
        let profile = device::device(named.and_then(device::shipped_for).ok_or_else(none)?)?;
        Ok(self.own.get_or_init(|| profile))
    }
}
