//! Supported versions of the files about hosts.

/// Version of a host profile; raised whenever a field is added or changes its meaning.
pub const PROFILE: u32 = 3;
/// Version of the probe that `python -m steptime.probe` writes.
pub(super) const PROBE: i64 = 1;
