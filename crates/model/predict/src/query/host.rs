//! Choice of the host that a step is predicted on.

use std::borrow::Cow;
use std::path::Path;

use steptime_cost::{HostProfile, Probe, TYPICAL_SLOWNESS};
use steptime_trace::Meta;

use crate::error::Error;
use crate::query_echo::HostSlowdown;
use crate::shipped_host::default_host;
use crate::step::Step;
use crate::time_sources::FACTORS;

/// Size limit of a profile, in bytes.
const LONGEST: u64 = 64 << 20;

/// Source of the host's times.
#[derive(Debug, Clone)]
pub(super) enum Times<'s> {
    /// The recording where it has host times, else a typical host.
    Best,
    /// The recording.
    Own,
    /// The recording, with the profiler's cost left in.
    Profiled,
    /// A profile.
    Profile(&'s HostProfile),
    /// A profile read from a file.
    File {
        profile: Box<HostProfile>,
        /// Name of the file, as given.
        name: String,
    },
    /// The shipped profile, scaled to the host of a probe.
    Probed(Probe),
    /// A host of typical speed.
    Typical,
}

/// The host chosen for a query.
pub(super) struct ChosenHost<'p> {
    /// Its name in the answer.
    pub(super) name: String,
    /// Its profile; `None` where the recording's own times are used.
    pub(super) profile: Option<Cow<'p, HostProfile>>,
    /// Its assumed slowness, where one factor gives it.
    pub(super) slower_than: Option<HostSlowdown>,
    /// Whether it is a typical host because the actual one is unknown.
    pub(super) assumed: bool,
}

impl Times<'_> {
    /// Whether the profiler's cost stays in.
    pub(super) fn is_profiled(&self) -> bool {
        matches!(self, Times::Profiled)
    }

    /// Whether they are the recording's own.
    pub(super) fn is_of_recording(&self) -> bool {
        matches!(self, Times::Best | Times::Own | Times::Profiled)
    }

    /// Chooses the host for a step; `slower` is a factor on a profile's times.
    ///
    /// # Errors
    /// Fails where the step has no host times of its own but needs them, where a factor is given without a profile to apply
    /// it to, or where the factor is out of range.
    pub(super) fn chosen(&self, slower: Option<f64>, step: &Step) -> Result<ChosenHost<'_>, Error> {
        if let Some(times) = slower.filter(|times| !FACTORS.contains(times)) {
            return Err(Error::HostFactor { times });
        }
        let derived = step.arguments.is_derived();
        let (name, profile) = match self {
            Times::Profile(profile) => ("profile", Cow::Borrowed(*profile)),
            Times::File { profile, name } => (name.as_str(), Cow::Borrowed(&**profile)),
            Times::Probed(probe) => ("probe", Cow::Owned(default_host()?.on(probe))),
            Times::Typical => return typical(slower, false),
            Times::Best if derived => return typical(slower, true),
            Times::Best => return own("own", slower),
            Times::Own | Times::Profiled if derived => {
                return Err(Error::NoHostTimes { path: step.path.clone() });
            }
            Times::Own => return own("own", slower),
            Times::Profiled => return own("profiled", slower),
        };
        let slower_than = slower.map(|times| HostSlowdown { times, machine: profile.machine.clone() });
        let profile = match slower {
            Some(times) => Cow::Owned(profile.slowed(times)),
            None => profile,
        };
        Ok(ChosenHost { name: name.to_owned(), profile: Some(profile), slower_than, assumed: false })
    }
}

/// The recording's own host.
fn own(name: &str, slower: Option<f64>) -> Result<ChosenHost<'static>, Error> {
    match slower {
        Some(_) => Err(Error::FactorOfNoProfile),
        None => Ok(ChosenHost { name: name.to_owned(), profile: None, slower_than: None, assumed: false }),
    }
}

/// The shipped profile for an unknown host, or for one slower by a given factor.
fn typical(slower: Option<f64>, assumed: bool) -> Result<ChosenHost<'static>, Error> {
    let shipped = default_host()?;
    let profile = match slower {
        Some(times) => shipped.slowed(times),
        None => shipped.on_any_host(),
    };
    let times = slower.unwrap_or(TYPICAL_SLOWNESS);
    let slower_than = Some(HostSlowdown { times, machine: profile.machine.clone() });
    Ok(ChosenHost { name: "default".to_owned(), profile: Some(Cow::Owned(profile)), slower_than, assumed })
}

/// Reads a host profile. For a file written by a probe, and for a recording with a probe, returns the shipped profile scaled to
/// that host.
///
/// # Errors
/// Fails where the file is none of these, or the recording has no probe.
pub fn read_host(path: &Path) -> Result<HostProfile, Error> {
    if path.is_dir() {
        let meta = Meta::read_of(path)?;
        let probe = Probe::from_numbers(&meta.host_probe, &meta.pulses);
        let probe = probe.ok_or_else(|| Error::NoProbe { path: path.into() })?;
        return Ok(default_host()?.on(&probe));
    }
    let text = steptime_trace::read_text(path, LONGEST);
    match text.ok().as_deref().and_then(Probe::parse) {
        Some(Ok(probe)) => Ok(default_host()?.on(&probe)),
        Some(Err(source)) => Err(Error::Probe { path: path.into(), source }),
        None => Ok(HostProfile::read(path)?),
    }
}
