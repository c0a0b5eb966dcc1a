//! How much of a recording was joined and priced, on the wire.

use serde::Serialize;
use steptime::cost::Found;
use steptime::cost::host::edge::LEVEL_NAMES;
use steptime::graph::Coverage;

use super::json::as_object;

/// All counts of [`Coverage`], and where the host's times came from.
#[derive(Debug, Clone, Serialize)]
pub struct CoverageJson {
    pub host_ops: usize,
    pub calls: usize,
    pub launches: usize,
    pub launches_in_op: usize,
    pub launches_outside: usize,
    pub launches_attributed_share: f64,
    pub activities: usize,
    pub activities_linked: usize,
    pub activities_linked_share: f64,
    pub activities_in_steps: usize,
    pub activities_before_steps: usize,
    pub steps: usize,
    pub steps_alike: usize,
    pub marks_matched_permille: usize,
    pub clamped: usize,
    pub across_steps: usize,
    pub stream_waits: usize,
    pub waits_inferred: usize,
    pub waits_refuted: usize,
    pub hand_offs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priced: Option<Priced>,
}

/// How many host gaps were priced from what.
#[derive(Debug, Clone, Serialize)]
pub struct Priced {
    /// From the recording itself.
    pub own: usize,
    /// From a profile.
    pub profile: usize,
    /// Of these, by how much of the context agreed.
    #[serde(serialize_with = "as_object")]
    pub profile_by_level: Vec<(&'static str, usize)>,
    /// From nothing.
    pub unpriced: usize,
}

impl CoverageJson {
    /// Of a graph; with prices, where the host was priced.
    pub fn new(coverage: &Coverage, found: Option<&Found>) -> CoverageJson {
        CoverageJson {
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
            steps: coverage.steps,
            steps_alike: coverage.steps_alike,
            marks_matched_permille: coverage.marks_matched_permille,
            clamped: coverage.clamped,
            across_steps: coverage.across_steps,
            stream_waits: coverage.stream_waits,
            waits_inferred: coverage.waits_inferred,
            waits_refuted: coverage.waits_refuted,
            hand_offs: coverage.hand_offs,
            priced: found.map(Priced::new),
        }
    }
}

impl Priced {
    fn new(found: &Found) -> Priced {
        Priced {
            own: found.own,
            profile: found.profile.iter().sum(),
            profile_by_level: LEVEL_NAMES.into_iter().zip(found.profile).collect(),
            unpriced: found.unpriced,
        }
    }
}
