//! Where the host's times come from: what was typed, looked up.

use std::borrow::Cow;
use std::path::Path;

use steptime::cost::{HostProfile, Probe, ProfilerCost};
use steptime::{Host, HostMode, Process, Step, default_host};

use super::Failure;
use crate::cli::{HostChoice, ProcessChoice};

/// The longest profile that is read.
const LONGEST: u64 = 64 << 20;

/// The profile that was asked for; `None` where the recording's own times were.
pub fn profile(choice: &HostChoice) -> Result<Option<Cow<'static, HostProfile>>, Failure> {
    Ok(match choice {
        HostChoice::Own | HostChoice::LeaveOneOut => None,
        HostChoice::Default => Some(Cow::Borrowed(shipped()?)),
        HostChoice::File(path) => Some(Cow::Owned(file(path)?)),
    })
}

/// A host profile, the shipped one for the host of a probe's file, or that for the host of a recording with a probe.
fn file(path: &Path) -> Result<HostProfile, Failure> {
    if path.is_dir() {
        let meta = steptime::trace::Meta::read_of(path)?;
        let probe = Probe::of_numbers(&meta.host_probe, &meta.pulses).ok_or_else(|| {
            format!(
                "{}: the recording holds no probe of its host: record it again, or measure the host with \
                 `python -m steptime.probe -o my-host.toml`",
                path.display()
            )
        })?;
        return Ok(shipped()?.on(&probe));
    }
    let text = steptime::trace::read_text(path, LONGEST);
    match text.ok().as_deref().and_then(Probe::parse) {
        Some(Ok(probe)) => Ok(shipped()?.on(&probe)),
        Some(Err(what)) => Err(format!("{}: {what}", path.display()).into()),
        None => Ok(HostProfile::read(path)?),
    }
}

/// The profile that ships with steptime.
pub fn shipped() -> Result<&'static HostProfile, Failure> {
    Ok(default_host()?)
}

/// For a prediction.
pub fn host(profile: Option<&HostProfile>, keep_profiler: bool) -> Host<'_> {
    match profile {
        Some(profile) => Host::Profile(profile),
        None if keep_profiler => Host::Profiled,
        None => Host::Own,
    }
}

/// The state of the process to predict: as asked for, else as the recording has it.
pub fn set_process(recorded: &mut Step, asked: ProcessChoice) {
    match asked {
        ProcessChoice::Auto => {}
        ProcessChoice::Profiled => recorded.process = Process::Profiled,
        ProcessChoice::Fresh => recorded.process = Process::Fresh,
    }
}

/// For a validation.
pub fn mode(choice: &HostChoice) -> Result<HostMode, Failure> {
    Ok(match (choice, profile(choice)?) {
        (HostChoice::LeaveOneOut, _) => HostMode::LeaveOneOut,
        (_, None) => HostMode::Own,
        (HostChoice::Default, Some(profile)) => HostMode::Probed(Box::new(profile.into_owned())),
        (_, Some(profile)) => HostMode::Profile(Box::new(profile.into_owned())),
    })
}

/// What the profiler costs, as far as is known.
pub fn profiler() -> ProfilerCost {
    default_host().map(|profile| profile.profiler).unwrap_or(ProfilerCost::PROFILED)
}
