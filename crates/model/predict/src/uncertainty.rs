//! Measured and chosen numbers of the engine: half-widths of intervals, shares, and thresholds of doubts.
//!
//! The numbers are in `profiles/uncertainty.toml`, which is compiled in. Each entry has its value, its meaning with the unit, its
//! source, and the date of the commit that introduced it. Half-widths are of 90 % intervals.

mod doubts;
mod entry;
#[cfg(test)]
mod tests;
mod times;

use std::sync::LazyLock;

use serde::Deserialize;

pub(crate) use self::doubts::Interval;
pub use self::doubts::{Doubts, Notes, ReplayDoubt};
pub use self::entry::SourcedValue;
pub(crate) use self::times::NextRun;
pub use self::times::{Collectives, Plans};
use self::times::{Decisions, HostTimes, KernelTimes, LaunchShapes, Memory, Ranks, Streams, Unknown};

/// The table that is compiled in.
const TABLE: &str = include_str!("../../../../profiles/uncertainty.toml");

static UNCERTAINTY: LazyLock<Uncertainty> =
    LazyLock::new(|| toml::from_str(TABLE).expect("a test reads the table that is compiled in"));

/// Returns the numbers of `profiles/uncertainty.toml`.
#[must_use]
pub fn uncertainty() -> &'static Uncertainty {
    &UNCERTAINTY
}

/// All numbers, by subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncertainty {
    pub(crate) next_run: NextRun,
    pub(crate) unknown: Unknown,
    pub(crate) kernels: KernelTimes,
    pub(crate) streams: Streams,
    pub(crate) launch_shapes: LaunchShapes,
    pub(crate) host: HostTimes,
    pub(crate) ranks: Ranks,
    pub(crate) memory: Memory,
    pub(crate) decisions: Decisions,
    /// Times of collectives.
    pub collectives: Collectives,
    /// Placements of tables.
    pub plans: Plans,
    /// Doubts about predictions.
    pub doubts: Doubts,
    /// Notes on predictions, which do not widen the interval.
    pub notes: Notes,
}
