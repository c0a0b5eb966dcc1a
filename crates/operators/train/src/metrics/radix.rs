//! Two-digit radix order of scores.
//!
//! A key is a score's 32 bits in an order that integers have too, in two digits of 16 bits. Chunks of keys are grouped by
//! their high digit, each chunk by itself; then, for one high digit at a time, low digits are counted.

/// Keys of a chunk: its groups are written within a core's cache.
pub(super) const CHUNK: usize = 1 << 20;
/// Values of a digit.
pub(super) const DIGITS: usize = 1 << 16;

/// The bits of a score that is not NaN, such that keys are ordered as scores are; both zeros have one key.
pub(super) fn key(score: f32) -> u32 {
    // Adding zero turns -0 into 0.
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// A chunk of keys, grouped by their high digit.
pub(super) struct Grouped {
    /// The low digits.
    low: Vec<u16>,
    /// For every high digit, the end of its group.
    ends: Vec<u32>,
}

impl Grouped {
    /// Groups at most [`CHUNK`] keys.
    pub(super) fn new(keys: &[u32]) -> Self {
        let high = |key: u32| (key >> 16) as usize;
        let mut ends = vec![0u32; DIGITS];
        keys.iter().for_each(|&key| ends[high(key)] += 1);
        let mut end = 0;
        for count in &mut ends {
            // First the start of each group; the end once its keys are written.
            (*count, end) = (end, end + *count);
        }
        let mut low = vec![0; keys.len()];
        for &key in keys {
            let next = &mut ends[high(key)];
            low[*next as usize] = key as u16;
            *next += 1;
        }
        Grouped { low, ends }
    }

    /// Low digits of the keys of one high digit, in no order.
    pub(super) fn group(&self, high: usize) -> &[u16] {
        let start = if high == 0 { 0 } else { self.ends[high - 1] };
        &self.low[start as usize..self.ends[high] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_scores() {
        let scores =
            [f32::NEG_INFINITY, f32::MIN, -1.0, -1e-40, 0.0, 1e-40, 0.5, 1.0, f32::MAX, f32::INFINITY];
        assert!(scores.is_sorted_by(|&a, &b| key(a) < key(b)));
        assert_eq!(key(-0.0), key(0.0));
    }

    #[test]
    fn groups_hold_every_key() {
        let mut keys: Vec<u32> = (0..10_000u32).map(|i| i.wrapping_mul(0x9E37_79B9) >> (i % 20)).collect();
        let grouped = Grouped::new(&keys);
        let low = |high: u32| {
            let mut group = grouped.group(high as usize).to_vec();
            group.sort_unstable();
            group.into_iter().map(move |low| high << 16 | u32::from(low))
        };
        let ordered: Vec<u32> = (0..DIGITS as u32).flat_map(low).collect();
        keys.sort_unstable();
        assert_eq!(ordered, keys);
    }
}
