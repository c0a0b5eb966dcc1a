//! Sources of host times from command-line options.

use steptime_cost::HostProfile;
use steptime_cost::Process;
use steptime_predict::{HostMode, default_host, read_host};

use super::Failure;
use crate::cli::{HostChoice, ProcessChoice};

/// Returns the profile that ships with steptime.
pub fn shipped() -> Result<&'static HostProfile, Failure> {
    Ok(default_host()?)
}

/// Returns the state of the predicted process; `None` for that of the recording.
pub fn process(asked: ProcessChoice) -> Option<Process> {
    match asked {
        ProcessChoice::Auto => None,
        ProcessChoice::Profiled => Some(Process::Profiled),
        ProcessChoice::Fresh => Some(Process::Fresh),
    }
}

/// Returns the host mode of a validation.
pub fn mode(choice: &HostChoice) -> Result<HostMode, Failure> {
    Ok(match choice {
        HostChoice::Own => HostMode::Own,
        HostChoice::LeaveOneOut => HostMode::LeaveOneOut,
        HostChoice::Default => HostMode::Probed(Box::new(shipped()?.clone())),
        HostChoice::File(path) => HostMode::Profile(Box::new(read_host(path)?)),
    })
}
