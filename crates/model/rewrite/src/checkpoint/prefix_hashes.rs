//! Length of equal stretches of a list from two places on.

/// Prefix hashes of a list, which compare two stretches of any length in constant time. Two different stretches have equal hashes with a probability
/// of 10^-18: callers verify a match item by item.
pub(super) struct PrefixHashes {
    /// Hash of the items before each place.
    sums: Vec<u64>,
    /// Powers of the base.
    powers: Vec<u64>,
}

/// A prime, 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0f3d_5b79_a2c4_e681;

impl PrefixHashes {
    pub fn new(keys: &[u32]) -> PrefixHashes {
        let (mut sums, mut powers) = (vec![0], vec![1]);
        for (at, &key) in keys.iter().enumerate() {
            sums.push((times(sums[at], BASE) + u64::from(key) + 1) % PRIME);
            powers.push(times(powers[at], BASE));
        }
        PrefixHashes { sums, powers }
    }

    fn sum(&self, from: usize, to: usize) -> u64 {
        (self.sums[to] + PRIME - times(self.sums[from], self.powers[to - from])) % PRIME
    }

    /// Number of equal items from two places on; `second` is the later one.
    pub fn after(&self, first: usize, second: usize) -> usize {
        let most = self.sums.len() - 1 - second;
        largest(most, |count| self.sum(first, first + count) == self.sum(second, second + count))
    }

    /// Number of equal items before two places; `first` is the earlier one.
    pub fn before(&self, first: usize, second: usize) -> usize {
        largest(first, |count| self.sum(first - count, first) == self.sum(second - count, second))
    }
}

/// The largest count up to `most` for which `same` holds, where it holds for all smaller counts.
fn largest(most: usize, same: impl Fn(usize) -> bool) -> usize {
    let (mut known, mut end) = (0, most + 1);
    while end - known > 1 {
        let middle = known + (end - known) / 2;
        if same(middle) { known = middle } else { end = middle }
    }
    known
}

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}
