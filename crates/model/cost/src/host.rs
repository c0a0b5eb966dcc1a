//! Host side: the time between the beginning or end of one op or call and the next.

pub mod captured;
pub mod copies;
pub mod coupling;
pub mod edge;
pub mod error;
pub mod fit;
pub mod gaps;
pub mod own;
pub mod price;
pub mod probe;
pub mod profile;
pub mod profiler;
mod release;
pub mod robust;
pub mod slowness;
pub mod speed;
pub mod stalls;
pub mod usual;
mod versions;
pub mod warmth;
