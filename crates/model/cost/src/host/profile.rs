//! The host profile: what the host side of a step costs, as a file that can be read and compared.

mod file;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::captured::Captured;
use super::copies::CopyCost;
use super::coupling::Coupling;
use super::gaps::Gaps;
use super::probe::{HostPace, Probe};
use super::profiler::{Process, ProfilerCost};
use super::speed::Elasticity;
pub use super::versions::PROFILE as VERSION;
use super::warmth::Warmth;
use crate::error::Error;

/// Half-width of the 90 % interval of a host's time when a probe or a factor tells its speed, relative.
const PROBED_SPREAD: f64 = 0.3;
/// The same for a host of which nothing is known.
const UNKNOWN_SPREAD: f64 = 0.68;
/// How many times as long as the shipped profile's a typical host takes: the median over recordings on seven others with
/// an H200.
pub const TYPICAL_SLOWNESS: f64 = 1.5;

/// The longest file that is read.
const LONGEST: u64 = 64 << 20;

/// Host costs measured on one or several recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct HostProfile {
    /// The recordings it was fitted on, with the host's speed in each.
    pub recordings: Vec<RecordingSpeed>,
    /// The profiler's own cost, already taken off the gaps.
    pub profiler: ProfilerCost,
    /// The profiler's own cost relative to a process that was never profiled.
    pub profiler_fresh: ProfilerCost,
    /// What a profiler that ran once leaves in a process.
    pub attached: ProfilerCost,
    /// How host work follows the speed of its core.
    pub elasticity: Elasticity,
    /// Delays between host and device.
    pub coupling: Coupling,
    /// What captured graphs cost besides their nodes' own time.
    pub captured: Captured,
    /// Host time of staged pageable copies.
    pub copies: CopyCost,
    /// Factors on a gap by how warm it is.
    pub warmth: Warmth,
    /// The gaps. Profiles made of one another share them.
    pub gaps: Arc<Gaps>,
    /// Half-width of the 90 % interval of a host's speed, relative.
    pub spread: f64,
    /// The host that the times are for, where it is named.
    pub machine: String,
    /// What pieces of host work take there; factors of other hosts are relative to it.
    pub reference: Probe,
    /// How much longer the host that is priced takes: no part of the file.
    pub pace: HostPace,
}

/// A recording that went into a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingSpeed {
    /// Its name.
    pub name: String,
    /// How long its gaps are relative to the profile's.
    pub slowness: f64,
    /// Whether it was left out, because its profiled steps are out of line with its un-profiled ones.
    pub excluded: bool,
    /// What tells it from every other recording, whatever its name; empty where it was not noted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
}

impl HostProfile {
    /// What the profiler costs relative to a process in the given state.
    pub fn profiler_of(&self, process: Process) -> &ProfilerCost {
        match process {
            Process::Profiled => &self.profiler,
            Process::Fresh => &self.profiler_fresh,
        }
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// Where the file cannot be read, is no host profile, is of another version, or holds a number that is
    /// not finite or is negative.
    pub fn read(path: &Path) -> Result<HostProfile, Error> {
        let text = steptime_trace::read_text(path, LONGEST)
            .map_err(|source| Error::Read { path: path.into(), source })?;
        HostProfile::parse(&text).map_err(|source| Error::Profile { path: path.into(), source })
    }

    /// The same for the host that a probe was measured on.
    #[must_use]
    pub fn on(&self, probe: &Probe) -> HostProfile {
        HostProfile { pace: probe.relative_to(&self.reference), spread: PROBED_SPREAD, ..self.clone() }
    }

    /// The same for a host of which nothing is known: a typical one is slower than the shipped profile's, and hosts differ
    /// by more than a factor of two.
    #[must_use]
    pub fn on_any_host(&self) -> HostProfile {
        HostProfile { pace: self.pace.slowed(TYPICAL_SLOWNESS), spread: UNKNOWN_SPREAD, ..self.clone() }
    }

    /// The same for a host that takes `times` as long for everything.
    #[must_use]
    pub fn slowed(&self, times: f64) -> HostProfile {
        HostProfile { pace: self.pace.slowed(times), spread: self.spread.max(PROBED_SPREAD), ..self.clone() }
    }
}
