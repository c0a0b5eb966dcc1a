//! Coverage of a recording: counts of joined and priced events.

use serde::Serialize;
use steptime_cost::GapSources;
use steptime_cost::host::gap_key::LEVEL_NAMES;
use steptime_graph::Coverage;

use super::shared::as_object;

/// All counts of [`Coverage`], and the sources of the host's times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphCoverage {
    /// Ops on the host.
    pub host_ops: usize,
    /// Runtime calls.
    pub calls: usize,
    /// Calls that launch something.
    pub launches: usize,
    /// Launches inside an op.
    pub launches_in_op: usize,
    /// Launches outside of any op.
    pub launches_outside: usize,
    /// Share of launches inside an op.
    pub launches_attributed_share: f64,
    /// Kernels, copies and memsets.
    pub activities: usize,
    /// Activities whose launch was recorded.
    pub activities_linked: usize,
    /// Share of activities whose launch was recorded.
    pub activities_linked_share: f64,
    /// Activities launched in a step.
    pub activities_in_steps: usize,
    /// Activities launched before the first step.
    pub activities_before_steps: usize,
    /// Kernel launches within the steps.
    pub launches_in_steps: usize,
    /// Kernel launches within the steps that have no kernel in the recording.
    pub launches_lost: usize,
    /// Steps at the beginning left out as warm-up.
    pub steps_of_warm_up: usize,
    /// Steps left out because the profiler lost their kernels.
    pub steps_incomplete: usize,
    /// Steps found.
    pub steps: usize,
    /// Steps that match the typical one.
    pub steps_alike: usize,
    /// Host events that match the typical step, in thousandths.
    pub marks_matched_permille: usize,
    /// Events cut to fit inside the event around them.
    pub clamped: usize,
    /// Events that cross a step boundary, left out.
    pub across_steps: usize,
    /// Waits of streams for events.
    pub stream_waits: usize,
    /// Stream waits whose event was inferred.
    pub waits_inferred: usize,
    /// Waits that the device's times contradict.
    pub waits_refuted: usize,
    /// Hand-offs between threads.
    pub hand_offs: usize,
    /// Sources of the host gaps' times, where gaps were priced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priced: Option<GapPriceCounts>,
}

/// Number of host gaps by source of their price.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapPriceCounts {
    /// Priced from the recording itself.
    pub own: usize,
    /// Priced from a profile.
    pub profile: usize,
    /// Priced from a profile, by how much of the context agreed.
    #[serde(serialize_with = "as_object")]
    pub profile_by_level: Vec<(&'static str, usize)>,
    /// Without a price.
    pub unpriced: usize,
}

impl GraphCoverage {
    /// Counts a graph; with prices where the host was priced.
    #[must_use]
    pub fn new(coverage: &Coverage, found: Option<&GapSources>) -> GraphCoverage {
        GraphCoverage {
            host_ops: coverage.host_ops,
            calls: coverage.calls,
            launches: coverage.launches,
            launches_in_op: coverage.launches_in_op,
            launches_outside: coverage.launches_outside,
            launches_attributed_share: coverage.attributed_share(),
            activities: coverage.activities,
            activities_linked: coverage.activities_linked,
            activities_linked_share: coverage.linked_share(),
            activities_in_steps: coverage.activities_in_steps,
            activities_before_steps: coverage.activities_before_steps,
            launches_in_steps: coverage.launches_in_steps,
            launches_lost: coverage.launches_lost,
            steps_of_warm_up: coverage.steps_of_warm_up,
            steps_incomplete: coverage.steps_incomplete,
            steps: coverage.steps,
            steps_alike: coverage.steps_alike,
            marks_matched_permille: coverage.marks_matched_permille,
            clamped: coverage.clamped,
            across_steps: coverage.across_steps,
            stream_waits: coverage.stream_waits,
            waits_inferred: coverage.waits_inferred,
            waits_refuted: coverage.waits_refuted,
            hand_offs: coverage.hand_offs,
            priced: found.map(GapPriceCounts::new),
        }
    }
}

impl GapPriceCounts {
    fn new(found: &GapSources) -> GapPriceCounts {
        GapPriceCounts {
            own: found.own,
            profile: found.profile.iter().sum(),
            profile_by_level: LEVEL_NAMES.into_iter().zip(found.profile).collect(),
            unpriced: found.unpriced,
        }
    }
}
