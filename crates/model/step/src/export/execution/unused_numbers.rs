//! Unused numbers.

/// The first of `count` consecutive numbers from `least` on that are not in `used`: after the largest, or, where that overflows, in the first large
/// enough gap.
pub(super) fn first(used: impl Iterator<Item = u64>, least: u64, count: u64) -> u64 {
    let mut used: Vec<u64> = used.collect();
    let after = used.iter().max().map_or(Some(least), |largest| largest.checked_add(1));
    if let Some(after) =
        after.map(|after| after.max(least)).filter(|after| after.checked_add(count).is_some())
    {
        return after;
    }
    used.sort_unstable();
    let mut free = least;
    for number in used {
        if number >= free {
            if number - free >= count {
                break;
            }
            free = number.saturating_add(1);
        }
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_largest_or_lie_where_there_is_room() {
        let check = |used: &[u64], count, expect| assert_eq!(first(used.iter().copied(), 2, count), expect);
        check(&[], 9, 2);
        check(&[7, 3], 9, 8);
        check(&[0], 9, 2);
        check(&[u64::MAX], 9, 2);
        check(&[u64::MAX, 4, 20], 9, 5);
        check(&[u64::MAX - 3, 4, 5], 2, u64::MAX - 2);
        check(&[u64::MAX - 3, 4, 5], 3, 6);
    }
}
