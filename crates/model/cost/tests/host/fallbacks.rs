//! A gap that was never seen is priced by one with less of its context: the narrowest known.

use std::sync::Arc;
use steptime_cost::host::gap_key::{EdgeKey, Edges, LEVELS};

use steptime_cost::{Gap, Gaps};
use steptime_cost::{HostCosts, HostProfile, Process};
use steptime_graph::{MarkId, StepGraph};
use steptime_trace::Nanos;

use crate::recordings::{fit, small};

/// Mark whose gap is looked up: from the end of `aten::add` to the beginning of `aten::mul`.
const MARK: MarkId = MarkId(2);

fn key(graph: &StepGraph) -> EdgeKey {
    let edges = Edges::from_graph(graph);
    edges.keys().nth(edges.of_mark[MARK] as usize).unwrap()
}

/// A key that agrees with `key` from `level` on, and at no narrower one.
fn agreeing_from(key: &EdgeKey, level: usize) -> EdgeKey {
    let mut other = key.clone();
    match level {
        0 => {}
        1 => other.before_that = "x{".into(),
        2 => other.before = "x{".into(),
        3 => other.right = "x{".into(),
        4 => other.left = "x}".into(),
        _ => (other.left, other.right) = ("x}".into(), "x{".into()),
    }
    other
}

/// A profile with these gaps, and default values otherwise.
fn profile(graph: &StepGraph, gaps: Vec<(EdgeKey, f64)>) -> HostProfile {
    let mut profile = fit(&[("small", graph)]);
    profile.warmth = steptime_cost::host::warmth::Warmth::default();
    let gaps = gaps.into_iter().map(|(key, us)| Gap { key, us, weight: 1.0 }).collect();
    profile.gaps = Arc::new(Gaps::new(gaps));
    profile
}

#[test]
fn the_narrowest_level_known_is_used() {
    let graph = small();
    let key = key(&graph);
    assert_eq!((key.left.as_str(), key.right.as_str()), ("aten::add}", "aten::mul{"));
    for level in 0..LEVELS {
        let other = agreeing_from(&key, level);
        for l in 0..LEVELS {
            assert_eq!(
                key.at_level(l) == other.at_level(l),
                agrees(level, l),
                "made for {level}, compared at {l}"
            );
        }
        // Every level from this one on is known, each with its own time.
        let gaps = (level..LEVELS).map(|l| (agreeing_from(&key, l), 10.0 * (l + 1) as f64)).collect();
        let costs = HostCosts::from_profile(&graph, &profile(&graph, gaps), Process::Profiled);
        assert_eq!(costs.gaps[MARK], Nanos::from_micros(10 * (level as i64 + 1)), "level {level}");
        assert!(costs.found.profile[level] >= 1, "{:?}", costs.found);
        assert_eq!(costs.found.own, 0);
    }
}

/// Levels 3 and 4 use one side each; the others have less and less context.
fn agrees(made_for: usize, level: usize) -> bool {
    match made_for {
        3 => level == 3 || level == 5,
        4 => level >= 4,
        _ => level >= made_for,
    }
}

#[test]
fn a_gap_without_even_its_class_is_counted_as_unpriced() {
    let graph = small();
    let costs = HostCosts::from_profile(&graph, &profile(&graph, Vec::new()), Process::Profiled);
    assert_eq!(costs.found.unpriced, graph.marks.len());
    assert!(costs.gaps.iter().all(|&gap| gap == Nanos::ZERO));
}

#[test]
fn like_gaps_count_by_their_weight() {
    let graph = small();
    let key = key(&graph);
    let mut profile = profile(&graph, Vec::new());
    let other = |before: &str| EdgeKey { before: before.into(), ..key.clone() };
    let gaps = vec![
        Gap { key: other("x{"), us: 10.0, weight: 3.0 },
        Gap { key: other("y{"), us: 50.0, weight: 1.0 },
        Gap { key: other("z{"), us: 999.0, weight: 0.0 },
    ];
    profile.gaps = Arc::new(Gaps::new(gaps));
    let costs = HostCosts::from_profile(&graph, &profile, Process::Profiled);
    assert_eq!(costs.gaps[MARK], Nanos::from_micros(20));
}
