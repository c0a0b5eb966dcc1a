//! Where the host's times come from: what was typed, looked up.

use steptime::cost::HostProfile;
use steptime::{HostMode, Process, default_host, read_host};

use super::Failure;
use crate::cli::{HostChoice, ProcessChoice};

/// The profile that ships with steptime.
pub fn shipped() -> Result<&'static HostProfile, Failure> {
    Ok(default_host()?)
}

/// The state of the process to predict; `None` where it is as the recording has it.
pub fn process(asked: ProcessChoice) -> Option<Process> {
    match asked {
        ProcessChoice::Auto => None,
        ProcessChoice::Profiled => Some(Process::Profiled),
        ProcessChoice::Fresh => Some(Process::Fresh),
    }
}

/// For a validation.
pub fn mode(choice: &HostChoice) -> Result<HostMode, Failure> {
    Ok(match choice {
        HostChoice::Own => HostMode::Own,
        HostChoice::LeaveOneOut => HostMode::LeaveOneOut,
        HostChoice::Default => HostMode::Probed(Box::new(shipped()?.clone())),
        HostChoice::File(path) => HostMode::Profile(Box::new(read_host(path)?)),
    })
}
