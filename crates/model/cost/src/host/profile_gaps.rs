//! A profile's values for the gaps of a graph.

use steptime_graph::{MarkId, StepGraph, TiVec};

use super::gap_key::Edges;
use super::gaps::Usual;
use super::profile::HostProfile;
use super::warmth;

/// Time of each gap of a graph on a profile's host, mark by mark; `None` if not even its class is known.
///
/// Used twice for a recording's own step: for the slowness of its host, and for its prices.
#[derive(Debug, Clone)]
pub struct UsualGaps(pub(super) TiVec<MarkId, Option<Usual>>);

impl UsualGaps {
    /// Looks every gap up.
    #[must_use]
    pub fn find(graph: &StepGraph, profile: &HostProfile) -> UsualGaps {
        let table = profile.gaps.table();
        let edges = Edges::from_graph(graph);
        let classes = warmth::classes(graph, &edges);
        let warm = table.find_all(&edges);
        let as_warm_as_here = |(&key, class)| {
            warm[key as usize].map(|warm| Usual { us: warm.us * profile.warmth.factor(class), ..warm })
        };
        UsualGaps(edges.of_mark.iter().zip(classes).map(as_warm_as_here).collect())
    }
}
