//! Sources of the times of a prediction.

use steptime_aten::Settings;
use steptime_cost::HostProfile;
use steptime_cost::device::{DeviceProfile, Indices, ModelChoice};

/// Accepted factors on a host's times.
pub(crate) const FACTORS: std::ops::RangeInclusive<f64> = 0.05..=50.0;

/// Source of the host's times.
#[derive(Debug, Clone)]
pub enum Host<'p> {
    /// The recording itself, the profiler's cost taken off.
    Own,
    /// The recording itself, with the profiler's cost left in: the profiled step.
    Profiled,
    /// A host profile.
    Profile(&'p HostProfile),
}

/// Source of kernel times.
#[derive(Debug, Clone, Default)]
pub enum Kernels<'p> {
    /// The recording: the median of each activity.
    #[default]
    Measured,
    /// A device profile; measured kernel times of the recording are not used.
    Device {
        /// The profile.
        profile: &'p DeviceProfile,
        /// The selected models of the profile.
        models: ModelChoice,
        /// Distribution of lookup indices.
        indices: Indices,
        /// PyTorch's settings, which execution traces do not record.
        settings: Settings,
    },
}
