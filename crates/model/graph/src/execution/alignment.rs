//! Alignment of two sequences of names, one of which is equal to the other or to a part of it, except for small differences.

use super::end_to_end_alignment;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, Hash};

/// Number of items searched ahead for a point where two sequences agree again.
const LOOK_AHEAD: usize = 48;
/// Number of consecutive names that must agree there.
const AGREEMENT: usize = 3;
/// Lengths of runs that are tried as anchors, longest first.
const ANCHOR_LENGTHS: [usize; 3] = [12, 4, 1];
/// Maximum number of places of a run; a run with more places is not used as an anchor.
const MOST_PLACES: usize = 64;

/// Alignment of two sequences.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Pairs of equal names `(in short, in long)`, ascending in both.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Whether the short one fits as well elsewhere, as it does if the long one repeats itself.
    pub(super) ambiguous: bool,
}

/// Item: its name, and if available a number that no later item of that name has.
pub(super) type Item<T> = (T, Option<i64>);

/// Aligns `short` with `long` by name: from end to end if they differ little, otherwise as a part. Numbers, if
/// both have them and they match at least as many items, determine the position.
pub(super) fn align<T: Copy + Eq + Hash>(short: &[Item<T>], long: &[Item<T>]) -> Alignment {
    let names = |items: &[Item<T>]| items.iter().map(|&(name, _)| name).collect::<Vec<T>>();
    let (short_names, long_names) = (names(short), names(long));
    let from = |anchor: Option<Anchor>| match anchor {
        None => Alignment::default(),
        Some(anchor) => {
            Alignment { pairs: spread(&short_names, &long_names, anchor.place), ambiguous: anchor.tied }
        }
    };
    let numbered = |items: &[Item<T>]| -> Vec<Option<Item<T>>> {
        items.iter().map(|&item| item.1.map(|_| item)).collect()
    };
    let by_number = from(anchor(&numbered(short), &numbered(long), 1, Option::is_some));
    if let Some(pairs) = end_to_end_alignment::align(&short_names, &long_names)
        && pairs.len() > by_number.pairs.len()
    {
        return Alignment { pairs, ambiguous: false };
    }
    let lengths = ANCHOR_LENGTHS.into_iter();
    let by_name =
        from(lengths.filter_map(|length| anchor(&short_names, &long_names, length, |_| true)).next());
    if by_number.pairs.len() >= by_name.pairs.len() { by_number } else { by_name }
}

/// Starting point of an alignment.
struct Anchor {
    place: (usize, usize),
    tied: bool,
}

/// Returns the first place of the shift that most runs of `length` agree on, if `counts` holds for their first item; of
/// several such shifts the smallest.
fn anchor<T: Copy + Eq + Hash>(
    short: &[T],
    long: &[T],
    length: usize,
    counts: impl Fn(&T) -> bool,
) -> Option<Anchor> {
    let hasher = rustc_hash::FxBuildHasher;
    let mut places: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for (at, run) in long.windows(length).enumerate().filter(|(_, run)| counts(&run[0])) {
        let places = places.entry(hasher.hash_one(run)).or_default();
        if places.len() <= MOST_PLACES {
            places.push(at);
        }
    }
    // For each shift: the number of runs that agree, and the first of them.
    let mut shifts: FxHashMap<usize, (usize, usize)> = FxHashMap::default();
    for (at, run) in short.windows(length).enumerate().filter(|(_, run)| counts(&run[0])) {
        let found = places.get(&hasher.hash_one(run)).filter(|found| found.len() <= MOST_PLACES);
        for place in found.into_iter().flatten() {
            shifts.entry(place + short.len() - at).or_insert((0, at)).0 += 1;
        }
    }
    let most = shifts.values().map(|&(count, _)| count).max()?;
    let best = shifts.iter().filter(|&(_, &(count, _))| count == most);
    let tied = best.clone().count() > 1;
    let (&shift, &(_, at)) = best.min_by_key(|&(&shift, _)| (shift.abs_diff(short.len()), shift))?;
    Some(Anchor { place: (at, shift + at - short.len()), tied })
}

/// Extends the alignment backwards and forwards from a place.
fn spread<T: Copy + Eq>(short: &[T], long: &[T], (s, l): (usize, usize)) -> Vec<(usize, usize)> {
    let reversed = |items: &[T]| items.iter().rev().copied().collect::<Vec<T>>();
    let before = walk(&reversed(&short[..s]), &reversed(&long[..l]));
    let before = before.into_iter().rev().map(|(back, back_long)| (s - 1 - back, l - 1 - back_long));
    let after = walk(&short[s..], &long[l..]);
    before.chain(after.into_iter().map(|(on, on_long)| (s + on, l + on_long))).collect()
}

/// Walks both from the start; at differences, skips the fewest items after which they agree again.
fn walk<T: Copy + Eq>(short: &[T], long: &[T]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut s, mut l) = (0, 0);
    while s < short.len() && l < long.len() {
        if short[s] == long[l] {
            pairs.push((s, l));
            (s, l) = (s + 1, l + 1);
        } else if let Some((skip_short, skip_long)) = resume(&short[s..], &long[l..]) {
            (s, l) = (s + skip_short, l + skip_long);
        } else {
            s += 1;
        }
    }
    pairs
}

fn resume<T: Copy + Eq>(short: &[T], long: &[T]) -> Option<(usize, usize)> {
    let agree = |s: usize, l: usize| match (short.get(s..), long.get(l..)) {
        (Some(short), Some(long)) => {
            let length = AGREEMENT.min(short.len()).min(long.len());
            length > 0 && short[..length] == long[..length]
        }
        _ => false,
    };
    let skips = (1..=LOOK_AHEAD).flat_map(|skipped| (0..=skipped).map(move |s| (s, skipped - s)));
    skips.into_iter().find(|&(s, l)| agree(s, l))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Vec<Item<char>> {
        text.chars().map(|name| (name, None)).collect()
    }

    fn check(short: &str, long: &str, expected: &str) {
        let (short, long) = (items(short), items(long));
        let Alignment { pairs, .. } = align(&short, &long);
        assert!(pairs.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{pairs:?}");
        assert!(pairs.iter().all(|&(s, l)| short[s] == long[l]), "{pairs:?}");
        assert_eq!(pairs.iter().map(|&(s, _)| short[s].0).collect::<String>(), expected);
    }

    #[test]
    fn equal_sequences_pair_up() {
        check("abcabcabc", "abcabcabc", "abcabcabc");
        check("aaaa", "aaaa", "aaaa");
    }

    #[test]
    fn a_part_is_found_in_the_whole() {
        check("defghijklmnopq", "abcdefghijklmnopqrstuvw", "defghijklmnopq");
        let steps = "xyzabcdefghijklmn".repeat(9);
        check("abcdefghijklmn", &steps, "abcdefghijklmn");
    }

    #[test]
    fn small_differences_are_stepped_over() {
        check("abcdeXfghijklmnop", "..abcdefghijYklmnop..", "abcdefghijklmnop");
        check("Xabcdefghijklmn", "Yabcdefghijklmn", "abcdefghijklmn");
        check("abcdefghijkXlmn", "abcdefghijkYlmn", "abcdefghijklmn");
    }

    #[test]
    fn nothing_in_common_gives_nothing() {
        check("abc", "xyz", "");
        check("", "xyz", "");
        check("abc", "", "");
    }

    #[test]
    fn numbers_tell_repetitions_apart() {
        let mut long = items(&"xyzabcdefghijklmn".repeat(3));
        let mut short = items("abcdefghijklmn");
        let first = align(&short, &long);
        assert_eq!((first.pairs[0], first.ambiguous), ((0, 3), true));
        for (at, item) in long.iter_mut().enumerate().filter(|(_, item)| item.0 == 'c') {
            item.1 = Some(at as i64);
        }
        short[2].1 = Some(17 + 5);
        let second = align(&short, &long);
        assert_eq!((second.pairs[0], second.pairs.len(), second.ambiguous), ((0, 20), 14, false));
        // A number that matches elsewhere is outvoted.
        let stray = ('c', Some(5));
        let long = [vec![stray], items(&"?".repeat(LOOK_AHEAD + 9)), items("abcdef")].concat();
        let short = [items("ab"), vec![stray], items("def")].concat();
        assert_eq!(align(&short, &long).pairs.len(), 6);
    }
}
