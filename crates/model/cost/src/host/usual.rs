//! What a profile knows of the gaps of a graph.

use rustc_hash::FxHashMap;
use steptime_graph::{MarkId, StepGraph, TiVec};

use super::edge::{EdgeKey, Edges, LEVELS};
use super::profile::HostProfile;
use super::warmth;

/// What each gap of a graph takes on a profile's host, mark by mark; `None` where not even its class is known.
///
/// Used twice for a recording's own step: for the slowness of its host, and for its prices.
#[derive(Debug, Clone)]
pub struct UsualGaps(pub(super) TiVec<MarkId, Option<Usual>>);

/// What a gap takes on a profile's host, and how that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usual {
    /// Its time, as warm as it is in this step, microseconds.
    pub us: f64,
    /// How much of its context the profile knew: an index into [`super::edge::LEVEL_NAMES`].
    pub level: usize,
}

impl UsualGaps {
    /// Looks every gap up.
    #[must_use]
    pub fn of(graph: &StepGraph, profile: &HostProfile) -> UsualGaps {
        let edges = Edges::of_graph(graph);
        let classes = warmth::classes(graph, &edges);
        let table = Table::new(profile);
        let warm: Vec<Option<Usual>> = edges.keys().map(|key| table.find(&key)).collect();
        let as_warm_as_here = |(&key, class)| {
            warm[key as usize].map(|warm| Usual { us: warm.us * profile.warmth.of(class), ..warm })
        };
        UsualGaps(edges.of_mark.iter().zip(classes).map(as_warm_as_here).collect())
    }
}

/// The profile's gaps by key at every level: sums of time and of weight.
struct Table<'p> {
    levels: [FxHashMap<[&'p str; 5], (f64, f64)>; LEVELS],
}

impl<'p> Table<'p> {
    fn new(profile: &'p HostProfile) -> Table<'p> {
        let mut levels: [FxHashMap<_, (f64, f64)>; LEVELS] = Default::default();
        for gap in &profile.gaps {
            for (level, table) in levels.iter_mut().enumerate() {
                let sum = table.entry(gap.key.at_level(level)).or_default();
                sum.0 += gap.us * gap.weight;
                sum.1 += gap.weight;
            }
        }
        Table { levels }
    }

    /// The time when warm under the narrowest key that is known.
    fn find(&self, key: &EdgeKey) -> Option<Usual> {
        self.levels.iter().enumerate().find_map(|(level, table)| {
            let &(sum, weight) = table.get(&key.at_level(level))?;
            (weight > 0.0).then(|| Usual { us: sum / weight, level })
        })
    }
}
