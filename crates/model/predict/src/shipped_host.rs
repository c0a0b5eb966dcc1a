//! The shipped host profile.

use std::sync::LazyLock;

use steptime_cost::{Coupling, HostProfile, Process, ProfilerCost};

use crate::error::Error;

static DEFAULT_HOST: LazyLock<Result<HostProfile, steptime_cost::ProfileError>> =
    LazyLock::new(|| HostProfile::parse(include_str!("../../../../profiles/host-default.toml")));

/// Returns the shipped host profile.
///
/// # Errors
/// Never fails in a released build: a test checks the profile.
pub fn default_host() -> Result<&'static HostProfile, Error> {
    DEFAULT_HOST.as_ref().map_err(|source| Error::ShippedHost { source })
}

/// The profiler's cost and the fallback delays that an `own` host is priced with: those of the shipped profile.
pub fn own_constants(process: Process) -> (ProfilerCost, Coupling) {
    match (default_host(), process) {
        (Ok(profile), _) => (*profile.profiler_of(process), profile.coupling),
        (Err(_), Process::Profiled) => (ProfilerCost::PROFILED, Coupling::default()),
        (Err(_), Process::Fresh) => (ProfilerCost::FRESH, Coupling::default()),
    }
}
