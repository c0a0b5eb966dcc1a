//! Where the times of a prediction come from.

use steptime_aten::Settings;
use steptime_cost::HostProfile;
use steptime_cost::device::{DeviceProfile, Indices, ModelChoice};

/// Where the host's times come from.
#[derive(Debug, Clone)]
pub enum Host<'p> {
    /// The recording itself, the profiler's cost taken off.
    Own,
    /// The recording itself, the profiler's cost left in: what the profiled step took.
    Profiled,
    /// A host profile.
    Profile(&'p HostProfile),
}

/// Where kernel times come from.
#[derive(Debug, Clone, Default)]
pub enum Kernels<'p> {
    /// The recording: the median of each activity.
    #[default]
    Measured,
    /// A device profile: nothing that was measured of the recording's kernels is used.
    Device {
        /// The profile.
        profile: &'p DeviceProfile,
        /// Which of its models.
        models: ModelChoice,
        /// How indices of lookups are distributed.
        indices: Indices,
        /// PyTorch's settings, which execution traces do not record.
        settings: Settings,
    },
}
