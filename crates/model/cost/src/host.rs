//! Host side: the time between the beginning or end of one op or call and the next.

pub mod captured;
pub mod copies;
mod device_sync;
pub mod error;
pub mod fit;
pub mod gap_key;
pub mod gaps;
pub mod host_device_delays;
pub mod price;
pub mod probe;
pub mod profile;
pub mod profile_gaps;
pub mod profiler;
pub mod recorded_gaps;
pub mod robust;
pub mod slowness;
pub mod speed;
pub mod stalls;
mod versions;
pub mod warmth;
