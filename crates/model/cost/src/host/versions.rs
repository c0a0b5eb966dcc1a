//! Versions of the files about hosts that are read.

/// Version of a host profile; raised whenever a field is added or changes its meaning.
pub const PROFILE: u32 = 3;
/// Version of a probe, as `python -m steptime.probe` writes it.
pub(super) const PROBE: i64 = 1;
