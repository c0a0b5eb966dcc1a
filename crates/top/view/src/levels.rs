//! Levels of detail: a coarser level groups neighbours that together are shorter than its resolution, with their number.
//! None is dropped: the counts of a level add up to the slices of its row.

use serde::Serialize;

use crate::columns::{Column, Columns};

/// Minimum number of slices of a row with levels.
const FEW: usize = 256;
/// Maximum number of groups of a level that is kept, relative to the level before.
const FEWER: f64 = 0.7;

/// A level of detail of one row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Level {
    /// Longest group of more than one slice, ticks.
    resolution: u32,
    /// Number of consecutive slices in each group.
    count: Column,
    /// Longest slice of each group, counted from the group's first.
    longest: Column,
}

/// Groups of neighbours: the number of slices in each, and the longest of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Groups {
    count: Vec<u32>,
    longest: Vec<u32>,
}

/// Builds the levels of a row, the finest first. Slices are `[start, end]`, in order and without overlap.
pub(crate) fn build(slices: &[[u32; 2]], columns: &mut Columns) -> Vec<Level> {
    let mut levels = Vec::new();
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else { return levels };
    if slices.len() < FEW {
        return levels;
    }
    let span = last[1].saturating_sub(first[0]).max(1);
    let mut before = slices.len();
    // From less than a pixel of a strongly magnified step to a pixel of the whole step.
    for halvings in (9..=24).rev() {
        let resolution = span >> halvings;
        if resolution == 0 {
            continue;
        }
        let groups = grouped(slices, resolution);
        if groups.count.len() as f64 <= FEWER * before as f64 {
            before = groups.count.len();
            let (count, longest) = (columns.whole(groups.count), columns.whole(groups.longest));
            levels.push(Level { resolution, count, longest });
        }
    }
    levels
}

fn grouped(slices: &[[u32; 2]], resolution: u32) -> Groups {
    let mut groups = Groups::default();
    let mut begin = 0;
    while begin < slices.len() {
        let from = slices[begin][0];
        let fits = |slice: &&[u32; 2]| slice[1].saturating_sub(from) <= resolution;
        let count = 1 + slices[begin + 1..].iter().take_while(fits).count();
        let length = |at: &usize| slices[begin + at][1].saturating_sub(slices[begin + at][0]);
        let longest = (0..count).rev().max_by_key(length).unwrap_or(0);
        groups.count.push(count as u32);
        groups.longest.push(longest as u32);
        begin += count;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_and_none_is_dropped() {
        let slices = [[0, 2], [2, 6], [6, 8], [20, 40], [41, 42], [43, 44]];
        let groups = grouped(&slices, 10);
        assert_eq!(groups, Groups { count: vec![3, 1, 2], longest: vec![1, 0, 0] });
        assert_eq!(grouped(&slices, 1).count, [1; 6]);
    }

    #[test]
    fn each_level_holds_every_slice_in_fewer_groups() {
        let slices: Vec<[u32; 2]> =
            (0..100_000_u32).map(|i| [i * 100, i * 100 + 1 + (i * 37) % 99]).collect();
        let mut columns = Columns::default();
        let levels = build(&slices, &mut columns);
        assert!(levels.len() >= 4, "{}", levels.len());
        let span = slices[slices.len() - 1][1];
        for level in &levels {
            let groups = grouped(&slices, level.resolution);
            assert_eq!(groups.count.iter().map(|&count| count as usize).sum::<usize>(), slices.len());
            // Two neighbours together are longer than the resolution.
            assert!(groups.count.len() as u64 <= 2 * u64::from(span) / u64::from(level.resolution) + 2);
        }
    }
}
