//! Warmth: the same gap costs more if its code was not run for a while, or never in this step.
//!
//! Instruction caches, branch predictors and the allocator's lists are warm right after a gap of the same kind
//! and cool down over the marks that follow. Two numbers measure the warmth of a gap: the number of marks since the same
//! gap, and the number of such gaps in this step so far.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use steptime_graph::{MarkId, StepGraph, TiSlice, TiVec};

use super::gap_key::Edges;

/// Upper bounds of the classes of distance, in marks; there is one more class above.
pub const DISTANCES: [usize; 5] = [50, 150, 400, 1000, 2500];
/// Upper bounds of the classes of occurrence within the step; there is one more class above.
pub const OCCURRENCES: [usize; 5] = [1, 2, 4, 8, 16];
/// Factors on the time of a gap: one for each class of distance times one for each class of occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warmth {
    /// Factors by distance.
    pub by_distance: [f64; DISTANCES.len() + 1],
    /// Factors by occurrence.
    pub by_occurrence: [f64; OCCURRENCES.len() + 1],
}

impl Default for Warmth {
    fn default() -> Self {
        Warmth { by_distance: [1.0; DISTANCES.len() + 1], by_occurrence: [1.0; OCCURRENCES.len() + 1] }
    }
}

impl Warmth {
    /// Returns the factor of a class.
    pub fn factor(&self, class: Class) -> f64 {
        self.by_distance[class.distance as usize] * self.by_occurrence[class.occurrence as usize]
    }
}

/// Warmth of a gap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Class {
    /// Index into [`Warmth::by_distance`].
    pub distance: u8,
    /// Index into [`Warmth::by_occurrence`].
    pub occurrence: u8,
}

/// Returns the class of warmth of every gap, steps running one after the other.
pub fn classes(graph: &StepGraph, edges: &Edges) -> TiVec<MarkId, Class> {
    // The same gap, for this purpose, is one between the same two marks, in any context.
    let mut kinds: FxHashMap<_, u32> = FxHashMap::default();
    let kind_of_key: Vec<u32> = edges
        .pairs()
        .map(|pair| {
            let next = kinds.len() as u32;
            *kinds.entry(pair).or_insert(next)
        })
        .collect();
    let order = by_time(graph);
    let mut last: Vec<Option<usize>> = vec![None; kinds.len()];
    let mut count = vec![0usize; kinds.len()];
    let mut classes: TiVec<MarkId, Class> = vec![Class::default(); order.len()].into();
    for round in 0..2 {
        for (position, &mark) in order.iter().enumerate() {
            let kind = kind_of_key[edges.of_mark[mark] as usize] as usize;
            let now = round * order.len() + position;
            if round == 1 {
                count[kind] += 1;
                let distance = last[kind].map_or(usize::MAX, |then| now - then);
                classes[mark] = class(distance, count[kind]);
            }
            last[kind] = Some(now);
        }
    }
    classes
}

/// Returns marks in the order of the template step: each thread's own order, merged as measured; or by hand-offs, if
/// nothing was measured.
fn by_time(graph: &StepGraph) -> Vec<MarkId> {
    let Some(step) = graph.complete_step() else { return by_hand_offs(graph) };
    let mut order: Vec<MarkId> = graph.marks.keys().collect();
    order.sort_by_key(|&m| graph.samples.mark(step, m));
    order
}

/// Runs each thread until it waits for a mark of another that has not come.
fn by_hand_offs(graph: &StepGraph) -> Vec<MarkId> {
    let mut order = Vec::with_capacity(graph.marks.len());
    let mut passed: TiVec<MarkId, bool> = vec![false; graph.marks.len()].into();
    let mut next: Vec<MarkId> = graph.threads.iter().map(|thread| thread.first_mark).collect();
    loop {
        let before = order.len();
        for (thread, next) in graph.threads.iter().zip(&mut next) {
            let ready = |mark: MarkId, passed: &TiSlice<MarkId, bool>| {
                let row = &graph.marks[mark];
                row.wraps || passed[row.after]
            };
            while *next < thread.end_mark && ready(*next, &passed) {
                passed[*next] = true;
                order.push(*next);
                *next = next.next();
            }
        }
        if order.len() == before {
            break;
        }
    }
    // Marks that wait for themselves come last.
    order.extend(graph.marks.keys().filter(|&mark| !passed[mark]));
    order
}

fn class(distance: usize, occurrence: usize) -> Class {
    let above = |bounds: &[usize], value| bounds.iter().take_while(|&&bound| value > bound).count() as u8;
    Class { distance: above(&DISTANCES, distance), occurrence: above(&OCCURRENCES, occurrence) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_bounded_from_above() {
        assert_eq!(class(1, 1), Class { distance: 0, occurrence: 0 });
        assert_eq!(class(50, 2), Class { distance: 0, occurrence: 1 });
        assert_eq!(class(51, 3), Class { distance: 1, occurrence: 2 });
        assert_eq!(class(usize::MAX, usize::MAX), Class { distance: 5, occurrence: 5 });
    }
}
