//! Alignment of two lists of names: pairs the ops of two steps.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Time limit for the optimal alignment; after it, an approximate one is used.
const PATIENCE: Duration = Duration::from_secs(5);

/// An index into the first list, into the second, or into both.
pub(super) type Pair = [Option<usize>; 2];

/// Aligns two lists. All indices of both appear in order, each once.
pub(super) fn align<T: std::hash::Hash + Eq + Ord>(first: &[T], second: &[T]) -> Vec<Pair> {
    let until = Instant::now().checked_add(PATIENCE);
    let mut pairs: Vec<Pair> = Vec::with_capacity(first.len().max(second.len()));
    for op in capture_diff_slices_deadline(Algorithm::Myers, first, second, until) {
        let (_, left, right) = op.as_tag_tuple();
        if matches!(op, DiffOp::Equal { .. }) {
            pairs.extend(left.zip(right).map(|(left, right)| [Some(left), Some(right)]));
        } else {
            pairs.extend(lone(left).map(|at| [at, None]));
            pairs.extend(lone(right).map(|at| [None, at]));
        }
    }
    pairs
}

fn lone(places: Range<usize>) -> impl Iterator<Item = Option<usize>> {
    places.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(first: &str, second: &str, expected: &str) {
        let (first, second): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
        let pairs = align(&first, &second);
        let both = pairs.iter().filter_map(|[left, right]| left.zip(*right));
        assert_eq!(both.map(|(left, _)| first[left]).collect::<String>(), expected);
        for (side, length) in [(0, first.len()), (1, second.len())] {
            let places: Vec<usize> = pairs.iter().filter_map(|pair| pair[side]).collect();
            assert_eq!(places, (0..length).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_in_both_is_paired_in_order() {
        check("abcdef", "abcdef", "abcdef");
        check("abXcdef", "abcdYef", "abcdef");
        check("abc", "xyz", "");
        check("", "abc", "");
    }
}
