//! Where the host's times come from: what was typed, looked up.

use std::borrow::Cow;

use steptime::cost::{HostProfile, ProfilerCost};
use steptime::{Host, HostMode, Process, Subject, default_host};

use super::Failure;
use crate::cli::{HostChoice, ProcessChoice};

/// The profile that was asked for; `None` where the recording's own times were.
pub fn profile(choice: &HostChoice) -> Result<Option<Cow<'static, HostProfile>>, Failure> {
    Ok(match choice {
        HostChoice::Own | HostChoice::LeaveOneOut => None,
        HostChoice::Default => Some(Cow::Borrowed(shipped()?)),
        HostChoice::File(path) => Some(Cow::Owned(HostProfile::read(path)?)),
    })
}

/// The profile that ships with steptime.
pub fn shipped() -> Result<&'static HostProfile, Failure> {
    Ok(default_host()
        .map_err(|what| format!("the host profile that ships with steptime is unusable: {what}"))?)
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
pub fn set_process(subject: &mut Subject, asked: ProcessChoice) {
    match asked {
        ProcessChoice::Auto => {}
        ProcessChoice::Profiled => subject.process = Process::Profiled,
        ProcessChoice::Fresh => subject.process = Process::Fresh,
    }
}

/// For a validation.
pub fn mode(choice: &HostChoice) -> Result<HostMode, Failure> {
    Ok(match (choice, profile(choice)?) {
        (HostChoice::LeaveOneOut, _) => HostMode::LeaveOneOut,
        (_, None) => HostMode::Own,
        (_, Some(profile)) => HostMode::Profile(Box::new(profile.into_owned())),
    })
}

/// What the profiler costs, as far as is known.
pub fn profiler() -> ProfilerCost {
    default_host().map(|profile| profile.profiler).unwrap_or(ProfilerCost::PROFILED)
}
