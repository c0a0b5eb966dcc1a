//! The host profile: host costs of a step, as a file for people to read and compare.

mod file;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::captured::Captured;
use super::copies::CopyCost;
use super::error::Error;
use super::gaps::Gaps;
use super::host_device_delays::Coupling;
use super::probe::{HostPace, Probe};
use super::profiler::{Process, ProfilerCost};
use super::speed::Elasticity;
pub use super::versions::PROFILE as VERSION;
use super::warmth::Warmth;

/// Half-width of the 90 % interval of a host's time if a probe or a factor gives its speed, relative.
const PROBED_SPREAD: f64 = 0.3;
/// The same for an unknown host.
const UNKNOWN_SPREAD: f64 = 0.68;
/// Ratio of a typical host's time to that of the shipped profile's: the median over recordings on seven other hosts with
/// an H200.
pub const TYPICAL_SLOWNESS: f64 = 1.5;

/// Longest file that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Host costs measured on one or several recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct HostProfile {
    /// Recordings of the fit, with the host's speed in each.
    pub recordings: Vec<RecordingSpeed>,
    /// Profiler's own cost, already subtracted from the gaps.
    pub profiler: ProfilerCost,
    /// Profiler's own cost relative to a process that was never profiled.
    pub profiler_fresh: ProfilerCost,
    /// Cost that a finished profiler leaves in a process.
    pub attached: ProfilerCost,
    /// Dependence of host work on the speed of its core.
    pub elasticity: Elasticity,
    /// Delays between host and device.
    pub coupling: Coupling,
    /// Costs of captured graphs in addition to their nodes' own time.
    pub captured: Captured,
    /// Host time of staged pageable copies.
    pub copies: CopyCost,
    /// Factors on a gap by its warmth.
    pub warmth: Warmth,
    /// Gaps. Profiles derived from one another share them.
    pub gaps: Arc<Gaps>,
    /// Half-width of the 90 % interval of a host's speed, relative.
    pub spread: f64,
    /// Name of the host of these times, if known.
    pub machine: String,
    /// Durations of pieces of host work there; factors of other hosts are relative to it.
    pub reference: Probe,
    /// Factors of the priced host: not part of the file.
    pub pace: HostPace,
}

/// A recording of a profile's fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingSpeed {
    pub name: String,
    /// Ratio of its gaps to the profile's.
    pub slowness: f64,
    /// Whether it was left out, because its profiled steps are out of line with its un-profiled ones.
    pub excluded: bool,
    /// Fingerprint that distinguishes it from every other recording, whatever its name; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
}

impl HostProfile {
    /// Returns the profiler's cost relative to a process in the given state.
    pub fn profiler_of(&self, process: Process) -> &ProfilerCost {
        match process {
            Process::Profiled => &self.profiler,
            Process::Fresh => &self.profiler_fresh,
        }
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// If the file cannot be read, is not a host profile, is of another version, or holds a number that is
    /// not finite or is negative.
    pub fn read(path: &Path) -> Result<HostProfile, Error> {
        let text = steptime_trace::read_text(path, LONGEST)
            .map_err(|source| Error::Read { path: path.into(), source })?;
        HostProfile::parse(&text).map_err(|source| Error::Profile { path: path.into(), source })
    }

    /// Returns the profile for the host of a probe.
    #[must_use]
    pub fn on(&self, probe: &Probe) -> HostProfile {
        HostProfile { pace: probe.relative_to(&self.reference), spread: PROBED_SPREAD, ..self.clone() }
    }

    /// Returns the profile for an unknown host: a typical one is slower than the shipped profile's, and hosts differ
    /// by more than a factor of two.
    #[must_use]
    pub fn on_any_host(&self) -> HostProfile {
        HostProfile { pace: self.pace.slowed(TYPICAL_SLOWNESS), spread: UNKNOWN_SPREAD, ..self.clone() }
    }

    /// Returns the profile for a host that takes `times` as long for everything.
    #[must_use]
    pub fn slowed(&self, times: f64) -> HostProfile {
        HostProfile { pace: self.pace.slowed(times), spread: self.spread.max(PROBED_SPREAD), ..self.clone() }
    }
}
