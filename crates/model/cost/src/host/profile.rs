//! The host profile: what the host side of a step costs, as a file that can be read and compared.

use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::captured::Captured;
use super::copies::CopyCost;
use super::coupling::Coupling;
use super::edge::EdgeKey;
use super::probe::{HostPace, Probe};
use super::profiler::{Process, ProfilerCost};
use super::speed::Elasticity;
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
/// Version of the file; raised whenever a field is added or changes its meaning.
pub const VERSION: u32 = 3;

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
    /// The gaps, sorted by key.
    pub gaps: Vec<Gap>,
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

/// One kind of gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// Its narrowest key.
    pub key: EdgeKey,
    /// Time when warm, microseconds.
    pub us: f64,
    /// Sum of the warmth factors it was measured at: its weight.
    pub weight: f64,
}

/// The file's head. The gaps follow it, one a line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    machine: String,
    spread: f64,
    staged_copy_us: CopyCost,
    warmth: Warmth,
    profiler: ProfilerCost,
    profiler_fresh: ProfilerCost,
    attached: ProfilerCost,
    speed: Elasticity,
    reference: Probe,
    coupling: Coupling,
    #[serde(default)]
    captured: Captured,
    #[serde(default)]
    recordings: Vec<RecordingSpeed>,
    #[serde(default, skip_serializing_if = "Gaps::is_empty")]
    gaps: Gaps,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gaps {
    rows: Vec<(String, String, String, String, String, f64, f64)>,
}

impl Gaps {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
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
        HostProfile::parse(&text).map_err(|what| Error::Profile { path: path.into(), what })
    }

    /// Parses the text of a profile.
    ///
    /// # Errors
    /// A description of what is wrong with it.
    pub fn parse(text: &str) -> Result<HostProfile, String> {
        #[derive(Deserialize)]
        struct Head {
            version: Option<u32>,
        }
        // The version stands before the first table; the gaps, nearly all of the text, are read once, below.
        let start = text.find("\n[").map_or(text, |end| &text[..end]);
        let head: Head =
            toml::from_str(start).or_else(|_| toml::from_str(text)).map_err(|e| e.to_string())?;
        match head.version {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!("version {other}, but this steptime reads version {VERSION}"));
            }
            None => return Err("no `version`: not a host profile".into()),
        }
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        let numbers = [file.spread]
            .into_iter()
            .chain(file.warmth.by_distance)
            .chain(file.warmth.by_occurrence)
            .chain(file.profiler.numbers())
            .chain(file.profiler_fresh.numbers())
            .chain(file.attached.numbers())
            .chain(file.speed.numbers())
            .chain(file.reference.numbers())
            .chain(file.coupling.numbers())
            .chain(file.captured.numbers())
            .chain(file.recordings.iter().map(|recording| recording.slowness))
            .chain(file.gaps.rows.iter().flat_map(|row| [row.5, row.6]));
        if numbers.into_iter().any(|n| !n.is_finite() || n < 0.0) || !file.staged_copy_us.is_valid() {
            return Err("a number is negative, not finite, or out of order".into());
        }
        let gaps = file
            .gaps
            .rows
            .into_iter()
            .map(|(before_that, before, left, right, within, us, weight)| Gap {
                key: EdgeKey { before_that, before, left, right, within },
                us,
                weight,
            })
            .collect();
        Ok(HostProfile {
            recordings: file.recordings,
            profiler: file.profiler,
            profiler_fresh: file.profiler_fresh,
            attached: file.attached,
            elasticity: file.speed,
            machine: file.machine,
            reference: file.reference,
            pace: HostPace::default(),
            coupling: file.coupling,
            captured: file.captured,
            copies: file.staged_copy_us,
            warmth: file.warmth,
            gaps,
            spread: file.spread,
        })
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

    /// The text of the profile's file.
    pub fn to_text(&self) -> String {
        let file = File {
            version: VERSION,
            spread: self.spread,
            warmth: self.warmth,
            staged_copy_us: self.copies.clone(),
            profiler: self.profiler,
            profiler_fresh: self.profiler_fresh,
            attached: self.attached,
            speed: self.elasticity,
            machine: self.machine.clone(),
            reference: self.reference,
            coupling: self.coupling,
            captured: self.captured,
            recordings: self.recordings.clone(),
            gaps: Gaps::default(),
        };
        let mut text = String::from(
            "# Host profile of steptime: what each gap on the host costs between the beginning or end of one op or\n\
             # call and the next. Made by `steptime host fit`. Times in microseconds.\n\n",
        );
        // The head holds plain numbers and strings: it always serialises.
        text.push_str(&toml::to_string(&file).unwrap_or_default());
        text.push_str(
            "\n# [two marks before, mark before, left, right, within, microseconds when warm, weight]\n\
             # `{` an op begins, `}` ends; `(` a call; `[` an annotation; `~` on another thread; `^` between steps\n\
             [gaps]\nrows = [\n",
        );
        for gap in &self.gaps {
            let key = &gap.key;
            let names = [&key.before_that, &key.before, &key.left, &key.right, &key.within]
                .map(|name| toml::Value::String(name.clone()).to_string());
            let _ = writeln!(text, "  [{}, {:.3}, {:.2}],", names.join(", "), gap.us, gap.weight);
        }
        text.push_str("]\n");
        text
    }
}
