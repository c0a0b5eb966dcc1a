//! Whose host a step is predicted on: decided here, once.

use std::borrow::Cow;
use std::path::Path;

use steptime_cost::{HostProfile, Probe, TYPICAL_SLOWNESS};
use steptime_trace::Meta;

use crate::asked::HostSlowerThan;
use crate::error::Error;
use crate::shipped_host::default_host;
use crate::step::Step;

/// The longest profile that is read, in bytes.
const LONGEST: u64 = 64 << 20;
/// Factors on a host's times that are taken.
pub(crate) const FACTORS: std::ops::RangeInclusive<f64> = 0.05..=50.0;

/// Where the host's times come from.
#[derive(Debug, Clone)]
pub(super) enum Times<'s> {
    /// The recording where it has any, else a typical host.
    Best,
    /// The recording.
    Own,
    /// The recording, the profiler's cost left in.
    Profiled,
    /// A profile.
    Profile(&'s HostProfile),
    /// A profile by the name of its file.
    File {
        /// The profile.
        profile: Box<HostProfile>,
        /// As it was named.
        name: String,
    },
    /// The shipped profile, brought to the host of a probe.
    Probed(Probe),
    /// A host of typical speed.
    Typical,
}

/// The host that a question comes to.
pub(super) struct Chosen<'p> {
    /// What it is called in the answer.
    pub(super) name: String,
    /// Its profile; `None` where the recording's own times are taken.
    pub(super) profile: Option<Cow<'p, HostProfile>>,
    /// How slow it is taken to be, where one factor says it.
    pub(super) slower_than: Option<HostSlowerThan>,
    /// Whether it is a typical host because nothing is known of it.
    pub(super) assumed: bool,
}

impl Times<'_> {
    /// Whether the profiler's cost stays in.
    pub(super) fn is_profiled(&self) -> bool {
        matches!(self, Times::Profiled)
    }

    /// The host for a step; `slower` is a factor on a profile's times.
    ///
    /// # Errors
    /// Where the step has no host times of its own and these are asked for; a factor without a profile to apply it
    /// to, or that makes no sense.
    pub(super) fn chosen(&self, slower: Option<f64>, step: &Step) -> Result<Chosen<'_>, Error> {
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
        let slower_than = slower.map(|times| HostSlowerThan { times, machine: profile.machine.clone() });
        let profile = match slower {
            Some(times) => Cow::Owned(profile.slowed(times)),
            None => profile,
        };
        Ok(Chosen { name: name.to_owned(), profile: Some(profile), slower_than, assumed: false })
    }
}

/// The recording's own host.
fn own(name: &str, slower: Option<f64>) -> Result<Chosen<'static>, Error> {
    match slower {
        Some(_) => Err(Error::FactorOfNoProfile),
        None => Ok(Chosen { name: name.to_owned(), profile: None, slower_than: None, assumed: false }),
    }
}

/// The shipped profile for a host that is not known, or that is so many times as slow.
fn typical(slower: Option<f64>, assumed: bool) -> Result<Chosen<'static>, Error> {
    let shipped = default_host()?;
    let profile = match slower {
        Some(times) => shipped.slowed(times),
        None => shipped.on_any_host(),
    };
    let times = slower.unwrap_or(TYPICAL_SLOWNESS);
    let slower_than = Some(HostSlowerThan { times, machine: profile.machine.clone() });
    Ok(Chosen { name: "default".to_owned(), profile: Some(Cow::Owned(profile)), slower_than, assumed })
}

/// Reads a host profile; of what a probe wrote, and of a recording with a probe, it is the shipped profile brought to
/// that host.
///
/// # Errors
/// Where the file is none of these, or the recording holds no probe.
pub fn read_host(path: &Path) -> Result<HostProfile, Error> {
    if path.is_dir() {
        let meta = Meta::read_of(path)?;
        let probe = Probe::of_numbers(&meta.host_probe, &meta.pulses);
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
