//! The medoid of steps that all differ: the step with the least total distance to the others.

use rustc_hash::FxHashMap;
use typed_index_collections::TiSlice;

use crate::ids::StepId;
use crate::marks::Label;
use crate::steps::StepWindow;

/// Maximum number of steps that each step is compared with; with more steps, a sample of this many.
const COMPARED: usize = 48;
/// Maximum length of a template, in median steps: a longer step is warm-up, or has a pause.
const LONGEST: i64 = 3;

/// Returns the step that has most marks in common with the others, among those that did not take much longer than the median
/// step; `labels` has each step's marks, by thread. Steps without marks are not candidates.
pub(crate) fn find(labels: &[&[Vec<Label>]], windows: &TiSlice<StepId, StepWindow>) -> StepId {
    let bags: Vec<FxHashMap<Label, u32>> = labels
        .iter()
        .map(|threads| {
            let mut bag = FxHashMap::default();
            for &label in threads.iter().flatten() {
                *bag.entry(label).or_default() += 1;
            }
            bag
        })
        .collect();
    let sizes: Vec<u64> = bags.iter().map(|bag| bag.values().map(|&n| u64::from(n)).sum()).collect();
    let mut lengths: Vec<i64> = windows.iter().map(|w| (w.end - w.start).0).collect();
    let own = lengths.clone();
    lengths.sort_unstable();
    let usual = lengths.get((lengths.len().max(1) - 1) / 2).copied().unwrap_or(0);
    let stride = bags.len().div_ceil(COMPARED).max(1);
    let distance = |a: usize, b: usize| -> u64 {
        let common =
            bags[a].iter().map(|(label, n)| u64::from(*n.min(bags[b].get(label).unwrap_or(&0)))).sum::<u64>();
        sizes[a] + sizes[b] - 2 * common
    };
    (0..bags.len())
        .filter(|&step| sizes[step] > 0)
        .min_by_key(|&step| {
            let far: u64 = (0..bags.len()).step_by(stride).map(|other| distance(step, other)).sum();
            let length = own.get(step).copied().unwrap_or(0);
            (length > usual.saturating_mul(LONGEST), far, length.saturating_sub(usual).saturating_abs(), step)
        })
        .map_or(StepId(0), StepId::from)
}

#[cfg(test)]
mod tests {
    use steptime_trace::Nanos;
    use typed_index_collections::TiVec;

    use super::*;

    #[test]
    fn the_warm_up_is_never_the_template() {
        let steps: Vec<Vec<Vec<Label>>> = (0..6)
            .map(|step| {
                let extra = if step == 0 { 100..160 } else { 50 + step..51 + step };
                vec![(0..20).chain(extra).collect()]
            })
            .collect();
        let labels: Vec<&[Vec<Label>]> = steps.iter().map(Vec::as_slice).collect();
        let mut at = 0;
        let windows: TiVec<StepId, StepWindow> = (0..6)
            .map(|step| {
                let start = at;
                at += [500, 2, 3, 2, 2, 2][step];
                StepWindow { number: step as u32, start: Nanos(start), end: Nanos(at), closed: true }
            })
            .collect();
        // All but the first have equal distances to the others: the first one of usual length wins.
        assert_eq!(find(&labels, &windows), StepId(1));
        assert_eq!(find(&[], TiSlice::from_ref(&[])), StepId(0));
    }
}
