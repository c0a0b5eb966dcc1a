//! Stretches of a list that repeat several times in a row.

use super::prefix_hashes::PrefixHashes;

/// A stretch of `length` items that occurs `count` times in a row, from item `first` on, followed by the first `rest` items of another repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeat {
    pub first: usize,
    pub length: usize,
    pub count: usize,
    pub rest: usize,
}

impl Repeat {
    fn covers(&self) -> usize {
        self.length * self.count + self.rest
    }
}

/// The repeats of a list for which `holds` is true: the longest first, then recursively those before and after it. Stretches have at least `least`
/// items.
pub(super) fn find(
    keys: &[u32],
    offset: usize,
    least: usize,
    holds: &impl Fn(&Repeat) -> bool,
) -> Vec<Repeat> {
    let same = PrefixHashes::new(keys);
    let mut all: Vec<Repeat> =
        (least..=keys.len() / 2).flat_map(|length| with_length(keys, &same, offset, length)).collect();
    // Of repeats that cover the same number of items, the one with the shortest stretch.
    all.sort_by_key(|repeat| (std::cmp::Reverse(repeat.covers()), repeat.length));
    let comes_again = |repeat: &Repeat| {
        let own = &keys[repeat.first - offset..][..repeat.covers()];
        own[repeat.length..] == own[..own.len() - repeat.length]
    };
    let Some(found) = all.into_iter().find(|repeat| holds(repeat) && comes_again(repeat)) else {
        return Vec::new();
    };
    let (begin, end) = (found.first - offset, found.first - offset + found.covers());
    let mut repeats = find(&keys[..begin], offset, least, holds);
    repeats.push(found);
    repeats.extend(find(&keys[end..], offset + end, least, holds));
    repeats
}

/// The stretches of a list that repeat the `length` items before each item. Each such stretch of at least `length` items contains a multiple of
/// `length`: only these places are tested.
fn with_length(keys: &[u32], same: &PrefixHashes, offset: usize, length: usize) -> Vec<Repeat> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at + length < keys.len() {
        if keys[at] != keys[at + length] {
            at += length;
            continue;
        }
        let begin = at - same.before(at, at + length);
        let end = at + same.after(at, at + length);
        let covers = end - begin + length;
        if covers >= 2 * length {
            let (count, rest) = (covers / length, covers % length);
            found.push(Repeat { first: offset + begin, length, count, rest });
        }
        at = end.max(at + 1).next_multiple_of(length);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats_in(text: &str) -> Vec<Repeat> {
        let keys: Vec<u32> = text.bytes().map(u32::from).collect();
        find(&keys, 0, 2, &|_| true)
    }

    #[test]
    fn the_shortest_stretch_that_covers_most() {
        assert_eq!(repeats_in("xabcabcabcabcy"), [Repeat { first: 1, length: 3, count: 4, rest: 0 }]);
        assert_eq!(repeats_in("abcabca"), [Repeat { first: 0, length: 3, count: 2, rest: 1 }]);
        assert_eq!(repeats_in("abcdefg"), []);
    }

    #[test]
    fn before_and_after_the_longest() {
        let found = repeats_in("ababzcdecdecdezfgfg");
        let places: Vec<_> = found.iter().map(|repeat| (repeat.first, repeat.length, repeat.count)).collect();
        assert_eq!(places, [(0, 2, 2), (5, 3, 3), (15, 2, 2)]);
    }

    #[test]
    fn as_many_are_found_as_by_comparing_all() {
        let mut state = 7_u32;
        for letters in 1..5 {
            let mut next = || {
                state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                (state >> 16) % letters
            };
            let keys: Vec<u32> = (0..200).map(|_| next()).collect();
            let same = PrefixHashes::new(&keys);
            for length in 1..=100 {
                let again = |at: usize| at + length < keys.len() && keys[at] == keys[at + length];
                let mut all = Vec::new();
                let mut begin = 0;
                for at in 0..=keys.len() - length {
                    if !again(at) {
                        if at - begin >= length {
                            all.push((begin, at - begin + length));
                        }
                        begin = at + 1;
                    }
                }
                let found = with_length(&keys, &same, 0, length);
                let found: Vec<_> = found.iter().map(|repeat| (repeat.first, repeat.covers())).collect();
                assert_eq!(found, all, "{letters} letters, {length} items");
            }
        }
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        assert_eq!(find(&[], 0, 1, &|_| true), []);
    }
}
