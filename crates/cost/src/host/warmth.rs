//! Warmth: the same gap costs more when its code was not run for a while, or never in this step.
//!
//! Instruction caches, branch predictors and the allocator's lists are warm right after a gap of the same kind
//! and cool down over the marks that follow. Two numbers tell how warm a gap is: how many marks ago the same
//! gap was last taken, and how often it was taken in this step so far.

use rustc_hash::FxHashMap;
use steptime_graph::StepGraph;

use super::edge::Edges;

/// Upper bounds of the classes of distance, in marks; one more class lies above.
pub const DISTANCES: [usize; 5] = [50, 150, 400, 1000, 2500];
/// Upper bounds of the classes of occurrence within the step; one more class lies above.
pub const OCCURRENCES: [usize; 5] = [1, 2, 4, 8, 16];
/// Number of classes.
pub const CLASSES: usize = (DISTANCES.len() + 1) * (OCCURRENCES.len() + 1);

/// The class of warmth of every gap, steps running one after the other.
pub fn classes(graph: &StepGraph, edges: &Edges) -> Vec<u8> {
    // The same gap, for this purpose, is one after the same mark in the same op.
    let mut kinds: FxHashMap<String, u32> = FxHashMap::default();
    let kind_of_key: Vec<u32> = edges
        .keys
        .iter()
        .map(|key| {
            let next = kinds.len() as u32;
            *kinds.entry(key.at_level(1)).or_insert(next)
        })
        .collect();
    let order = by_time(graph);
    let mut last: Vec<Option<usize>> = vec![None; kinds.len()];
    let mut count = vec![0usize; kinds.len()];
    let mut classes = vec![0u8; order.len()];
    for round in 0..2 {
        for (position, &mark) in order.iter().enumerate() {
            let kind = kind_of_key[edges.of_mark[mark as usize] as usize] as usize;
            let now = round * order.len() + position;
            if round == 1 {
                count[kind] += 1;
                let distance = last[kind].map_or(usize::MAX, |then| now - then);
                classes[mark as usize] = class(distance, count[kind]);
            }
            last[kind] = Some(now);
        }
    }
    classes
}

/// Marks in the order of the template step: each thread's own order, merged at the hand-offs.
fn by_time(graph: &StepGraph) -> Vec<u32> {
    let mut order: Vec<u32> = (0..graph.marks.len() as u32).collect();
    if let Some(step) = graph.complete_step() {
        order.sort_by_key(|&m| graph.samples.mark(step, m));
    }
    order
}

fn class(distance: usize, occurrence: usize) -> u8 {
    let row = DISTANCES.iter().take_while(|&&bound| distance > bound).count();
    let column = OCCURRENCES.iter().take_while(|&&bound| occurrence > bound).count();
    (row * (OCCURRENCES.len() + 1) + column) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_fill_the_table() {
        assert_eq!(class(1, 1), 0);
        assert_eq!(class(50, 1), 0);
        assert_eq!(class(51, 1), 6);
        assert_eq!(class(usize::MAX, usize::MAX) as usize, CLASSES - 1);
    }
}
