//! Numbers of doubts and notes: thresholds and widths.

use serde::Deserialize;

use super::entry::tables;

/// Doubts about predictions, by subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doubts {
    /// Replay of the recorded steps.
    pub replay: ReplayDoubt,
    pub(crate) input: Threshold,
    pub(crate) lost: LostDoubt,
    pub(crate) single_rank: SingleRankDoubt,
    pub(crate) arguments: Threshold,
    pub(crate) captured: CapturedDoubt,
    pub(crate) unpriced: UnpricedDoubt,
    pub(crate) large_copies: LargeCopiesDoubt,
    pub(crate) emulated: EmulatedDoubt,
    pub(crate) library: Threshold,
    pub(crate) other_profiler: OtherProfilerDoubt,
    pub(crate) host_tables: HostTablesDoubt,
    pub(crate) damaged_rank: Interval,
    pub(crate) missing_ranks: Interval,
    pub(crate) several_runs: Width,
    pub(crate) unknown_sizes: Width,
    pub(crate) single_step: Width,
}

tables! {
    /// Smallest share of the step that is reported.
    pub(crate) Threshold { pub(crate) threshold: f64 }
    /// Half-widths that differ by direction, of the logarithm of a step.
    pub(crate) Interval { pub(crate) below: f64, pub(crate) above: f64 }
    /// One half-width for both directions, of the logarithm of a step.
    pub(crate) Width { pub(crate) width: f64 }
    /// Replay of the recorded steps.
    pub ReplayDoubt {
        /// Relative error above which it is reported.
        pub threshold: f64,
        pub(crate) unsteady: f64, pub(crate) uneven_share: f64,
    }
    /// Kernels missing from a recording.
    pub(crate) LostDoubt { pub(crate) launches: f64, pub(crate) time: f64, pub(crate) no_estimate: f64 }
    /// One rank of several.
    pub(crate) SingleRankDoubt {
        pub(crate) threshold: f64, pub(crate) below: f64, pub(crate) other_side: f64, pub(crate) waits_unknown: f64,
    }
    /// Work of an unrecorded CUDA graph.
    pub(crate) CapturedDoubt { pub(crate) above: f64 }
    /// Device work without a price.
    pub(crate) UnpricedDoubt { pub(crate) no_estimate: f64 }
    /// Copies larger than any in the data of the host profile.
    pub(crate) LargeCopiesDoubt { pub(crate) threshold: f64, pub(crate) factor: f64 }
    /// Data types without units.
    pub(crate) EmulatedDoubt { pub(crate) factor: f64 }
    /// Profilers other than PyTorch's.
    pub(crate) OtherProfilerDoubt { pub(crate) below: f64 }
    /// Tables in hosts' memory behind caches.
    pub(crate) HostTablesDoubt { pub(crate) below_share: f64, pub(crate) above_share: f64 }
    /// Limits above or below which a note is made.
    pub Notes {
        /// Speed of the host relative to the profile's, below which it is reported.
        pub host_fast: f64,
        /// Speed of the host relative to the profile's, above which it is reported.
        pub host_slow: f64,
        /// Share of device activities without a launch.
        pub unlinked: f64,
        /// Share of device time outside of the fitted range.
        pub extrapolated: f64,
        /// Share of device time measured on another GPU.
        pub stood_in: f64,
        /// Share of device time in float32 products of unknown precision.
        pub float32_products: f64,
        /// Share of device time in lookups with assumed indices.
        pub lookups: f64,
    }
}
