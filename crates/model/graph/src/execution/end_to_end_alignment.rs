//! End-to-end alignment of two sequences that are equal except for small differences.
//!
//! Few edits transform one into the other, but if names repeat, the fewest edits can be made in several
//! places: then the partner of an item is ambiguous, and those items get no partner.

/// Minimum number of items of the shorter sequence per edit: with more edits, one is more likely a part of the other.
const ITEMS_AN_EDIT: usize = 4;
/// Maximum number of edits: time and memory grow with their square.
const MOST_EDITS: usize = 2000;

/// Returns the pairs that all alignments with the fewest edits have in common, ascending; `None` if the two differ too much.
pub(super) fn align<T: Copy + Eq>(a: &[T], b: &[T]) -> Option<Vec<(usize, usize)>> {
    if a == b {
        return Some((0..a.len()).map(|at| (at, at)).collect());
    }
    let most = (a.len().min(b.len()) / ITEMS_AN_EDIT).min(MOST_EDITS);
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let reversed = |items: &[T]| items.iter().rev().copied().collect::<Vec<T>>();
    let from_start = Reach::find(a, b, most)?;
    let from_end = Reach::find(&reversed(a), &reversed(b), most)?;
    Some(sure(a, b, &from_start, &from_end))
}

/// Furthest point on each diagonal for a number of edits: the largest number of items of `a`, on the diagonal with that many items of `a` more
/// than of `b`. Along a diagonal the number of edits never decreases, so this gives the number of edits for each
/// point.
struct Reach {
    /// By edits, then by diagonal, from minus the edits to plus the edits in steps of two; `NOWHERE` means outside.
    furthest: Vec<Vec<i64>>,
}

const NOWHERE: i64 = -1;

impl Reach {
    fn find<T: Copy + Eq>(a: &[T], b: &[T], most: usize) -> Option<Reach> {
        let (rows, columns) = (a.len() as i64, b.len() as i64);
        let mut reach = Reach { furthest: Vec::new() };
        for edits in 0..=most as i64 {
            let diagonals = (-edits..=edits).step_by(2);
            let furthest = diagonals.map(|diagonal| reach.next(a, b, edits, diagonal)).collect();
            reach.furthest.push(furthest);
            if reach.get(edits, rows - columns) == rows {
                return Some(reach);
            }
        }
        None
    }

    fn next<T: Copy + Eq>(&self, a: &[T], b: &[T], edits: i64, diagonal: i64) -> i64 {
        let inside = |x: i64| x >= 0 && x <= a.len() as i64 && (0..=b.len() as i64).contains(&(x - diagonal));
        let left = match self.get(edits - 1, diagonal - 1) {
            NOWHERE => NOWHERE,
            x => x + 1,
        };
        let stay = self.get(edits - 2, diagonal);
        let start = if edits == 0 { 0 } else { NOWHERE };
        let from = [start, left, self.get(edits - 1, diagonal + 1), stay];
        let Some(mut x) = from.into_iter().filter(|&x| inside(x)).max() else { return NOWHERE };
        while inside(x + 1) && a[x as usize] == b[(x - diagonal) as usize] {
            x += 1;
        }
        x
    }

    fn get(&self, edits: i64, diagonal: i64) -> i64 {
        if edits < 0 || diagonal.abs() > edits {
            return NOWHERE;
        }
        let furthest = self.furthest.get(edits as usize);
        furthest.map_or(NOWHERE, |furthest| furthest[(diagonal + edits) as usize / 2])
    }

    fn edits(&self) -> i64 {
        self.furthest.len() as i64 - 1
    }
}

/// Walks over all points of all alignments with the fewest edits; the partner of an item is certain if no such alignment gives it
/// another partner, or none.
fn sure<T: Copy + Eq>(a: &[T], b: &[T], from_start: &Reach, from_end: &Reach) -> Vec<(usize, usize)> {
    let (rows, columns) = (a.len() as i64, b.len() as i64);
    let edits = from_start.edits();
    // First point of a diagonal from which this number of edits leads to the end.
    let nearest = |left: i64, diagonal: i64| match from_end.get(left, rows - columns - diagonal) {
        NOWHERE => i64::MAX,
        x => rows - x,
    };
    let mut partners: Vec<Option<usize>> = vec![None; a.len()];
    let mut doubtful = vec![false; a.len()];
    for done in 0..=edits {
        for diagonal in (-done..=done).step_by(2) {
            let last = from_start.get(done, diagonal);
            let skips = nearest(edits - done - 1, diagonal + 1);
            for x in nearest(edits - done, diagonal)..=last {
                let Some(&item) = a.get(x as usize) else { break };
                let y = (x - diagonal) as usize;
                if x < last && item == b[y] {
                    doubtful[x as usize] |= partners[x as usize].replace(y).is_some();
                }
                doubtful[x as usize] |= x + 1 >= skips;
            }
        }
    }
    let pairs = partners.into_iter().zip(doubtful).enumerate();
    pairs.filter_map(|(x, (y, doubtful))| Some((x, y.filter(|_| !doubtful)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::align;

    /// Returns the items of `a` that have a partner.
    fn found(a: &str, b: &str) -> Option<String> {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let pairs = align(&a, &b)?;
        assert!(pairs.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1), "{pairs:?}");
        assert!(pairs.iter().all(|&(x, y)| a[x] == b[y]), "{pairs:?}");
        let other: Vec<(usize, usize)> = align(&b, &a)?.into_iter().map(|(y, x)| (x, y)).collect();
        assert_eq!(pairs, other);
        Some(pairs.into_iter().map(|(x, _)| a[x]).collect())
    }

    #[test]
    fn what_one_lacks_costs_only_itself() {
        assert_eq!(found("abcdefgh", "abcefgh").unwrap(), "abcefgh");
        assert_eq!(found("abcdefgh", "abcdXefgh").unwrap(), "abcdefgh");
        assert_eq!(found("abcdefgh", "abcdXfgh").unwrap(), "abcdfgh");
        assert_eq!(found("Xabcdefgh", "abcdefghY").unwrap(), "abcdefgh");
        assert_eq!(found("", "").unwrap(), "");
    }

    #[test]
    fn repetitions_do_not_mislead() {
        let block = "ltrmvxdjdjTRMbTRS".repeat(6);
        let short = block.replace("ltrmvx", "trv");
        assert_eq!(found(&block, &short).unwrap(), short);
        // The third of four blocks has no `e`.
        assert_eq!(found("abcdeabcdeabcdeabcde", "abcdeabcdeabcdabcde").unwrap(), "abcdeabcdeabcdabcde");
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        // It is unknown which of the three is missing.
        assert_eq!(found("abcdxxxefgh", "abcdxxefgh").unwrap(), "abcdefgh");
        // A whole round of a loop is missing: all its rounds are ambiguous, everything else is certain.
        assert_eq!(found("abcdefgxyxyxyhijklmn", "abcdefgxyxyhijklmn").unwrap(), "abcdefghijklmn");
        // Two swapped: each could be the one that stayed.
        assert_eq!(found("abcdxyefgh", "abcdyxefgh").unwrap(), "abcdefgh");
    }

    #[test]
    fn large_differences_are_not_for_this() {
        assert_eq!(found("abcdefgh", "xyzuvwst"), None);
        assert_eq!(found("abcd", "abcdabcd"), None);
        assert_eq!(found("", "abcd"), None);
    }

    /// Returns all alignments with the fewest edits, as sorted pairs.
    fn ways(a: &[u8], b: &[u8]) -> Vec<Vec<(usize, usize)>> {
        let mut table = vec![vec![(0, vec![Vec::new()]); b.len() + 1]; a.len() + 1];
        for (x, y) in (0..=a.len()).flat_map(|x| (0..=b.len()).map(move |y| (x, y))).skip(1) {
            let mut all: Vec<(usize, Vec<(usize, usize)>)> = Vec::new();
            let mut take = |(edits, ways): &(usize, Vec<Vec<_>>),
                            more: usize,
                            pair: Option<(usize, usize)>| {
                all.extend(ways.iter().map(|way| (edits + more, way.iter().copied().chain(pair).collect())));
            };
            if x > 0 {
                take(&table[x - 1][y], 1, None);
            }
            if y > 0 {
                take(&table[x][y - 1], 1, None);
            }
            if x > 0 && y > 0 && a[x - 1] == b[y - 1] {
                take(&table[x - 1][y - 1], 0, Some((x - 1, y - 1)));
            }
            let fewest = all.iter().map(|&(edits, _)| edits).min().unwrap();
            let mut ways: Vec<_> = all.into_iter().filter(|way| way.0 == fewest).map(|way| way.1).collect();
            ways.sort();
            ways.dedup();
            table[x][y] = (fewest, ways);
        }
        table.pop().unwrap().pop().unwrap().1
    }

    #[test]
    fn only_what_all_ways_share_is_paired() {
        for (word, lacks, extra) in (0..256)
            .flat_map(|word| (0..8).flat_map(move |lacks| (0..9).map(move |extra| (word, lacks, extra))))
        {
            let a: Vec<u8> = (0..8).map(|at| (word >> at & 1) as u8).collect();
            let mut b = a.clone();
            b.remove(lacks);
            if extra < 8 {
                b.insert(extra, u8::from(extra % 2 == 0));
            }
            let Some(pairs) = align(&a, &b) else { continue };
            let ways = ways(&a, &b);
            let shared = ways[0].iter().filter(|pair| ways.iter().all(|way| way.contains(pair)));
            assert_eq!(pairs, shared.copied().collect::<Vec<_>>(), "{a:?} {b:?}");
        }
    }
}
