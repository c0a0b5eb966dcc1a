//! Host time of staging a pageable copy, by its size.

use serde::{Deserialize, Serialize};
use steptime_trace::{Bytes, Nanos};

/// Size below which the time of a copy is mostly that of the call, and does not show the host's copy rate.
const SHOWS_RATE: u64 = 128 << 10;
/// Gigabytes a second at which a host copies into its staging buffer: a usual rate, and bounds for one thread of any
/// processor.
const USUAL_GB_S: f64 = 8.0;
const SLOWEST_GB_S: f64 = 3.0;
const FASTEST_GB_S: f64 = 25.0;
/// Longest price of a copy, µs, whatever its size: times are added up.
const LONGEST_US: f64 = 1e9;

/// Host time of a staged copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staging {
    pub time: Nanos,
    /// Whether the copy is larger than all measured ones: its time is then known to a factor of two.
    pub guessed: bool,
}

/// Host time of a staged copy at measured sizes; linear between. A smaller copy costs the same as the smallest.
/// The excess of a larger one is copied at the rate of the larger half of the sizes, if these are large
/// enough to show one, and at a usual rate otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CopyCost {
    /// Pairs of size in bytes and time in microseconds, by rising size.
    points: Vec<(u64, f64)>,
}

impl CopyCost {
    /// Fits observations of single copies: the median of each size; if a larger copy was measured cheaper,
    /// both get their mean, weighted by their counts (isotonic regression).
    pub fn fit(observations: &[(Bytes, Nanos)]) -> CopyCost {
        let mut sorted: Vec<(u64, i64)> = observations.iter().map(|&(b, t)| (b.0, t.0)).collect();
        sorted.sort_unstable();
        // Blocks of sizes that share a time: sizes, time in microseconds, weight.
        let mut blocks: Vec<(Vec<u64>, f64, f64)> = Vec::new();
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            let middle = group[group.len() / 2].1 as f64 / 1000.0;
            blocks.push((vec![group[0].0], middle, group.len() as f64));
            while let [.., before, last] = &mut blocks[..]
                && before.1 >= last.1
            {
                let weight = before.2 + last.2;
                before.1 = (before.1 * before.2 + last.1 * last.2) / weight;
                before.2 = weight;
                before.0.append(&mut last.0);
                blocks.pop();
            }
        }
        let round = |us: f64| (us * 1000.0).round() / 1000.0;
        let points = blocks
            .into_iter()
            .flat_map(|(sizes, us, _)| sizes.into_iter().map(move |b| (b, round(us))))
            .collect();
        CopyCost { points }
    }

    /// Returns the host time of a copy; `None` if nothing was measured.
    pub fn staging(&self, bytes: Bytes) -> Option<Staging> {
        let size = bytes.0 as f64;
        let (&first, &last) = (self.points.first()?, self.points.last()?);
        let after = self.points.partition_point(|&(b, _)| b < bytes.0);
        let us = match after {
            0 => first.1,
            i if i < self.points.len() => between(self.points[i - 1], self.points[i], size),
            _ => last.1 + (size - last.0 as f64) / (1e3 * self.rate_gb_s()),
        };
        Some(Staging { time: Nanos::from_micros_f64(us.min(LONGEST_US)), guessed: bytes.0 > last.0 })
    }

    /// Returns the rate at which larger copies than those measured continue, in gigabytes per second.
    fn rate_gb_s(&self) -> f64 {
        let Some(&last) = self.points.last().filter(|last| last.0 >= SHOWS_RATE) else { return USUAL_GB_S };
        let Some(&base) = self.points.iter().rfind(|point| point.0 <= last.0 / 4) else { return USUAL_GB_S };
        let us = (last.1 - base.1).max(0.0);
        // If the time does not grow, the quotient is infinite, and bounded like any other.
        ((last.0 - base.0) as f64 / (1e3 * us)).clamp(SLOWEST_GB_S, FASTEST_GB_S)
    }

    /// Whether the points are finite, and sizes rise.
    pub fn is_valid(&self) -> bool {
        self.points.iter().all(|p| p.1.is_finite() && p.1 >= 0.0)
            && self.points.windows(2).all(|pair| pair[0].0 < pair[1].0)
    }
}

fn between(a: (u64, f64), b: (u64, f64), size: f64) -> f64 {
    let share = (size - a.0 as f64) / (b.0 as f64 - a.0 as f64);
    a.1 + share * (b.1 - a.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_linear_between_what_was_measured() {
        let us = |n: i64| Nanos(n * 1000);
        let cost = CopyCost::fit(&[(Bytes(100), us(2)), (Bytes(300), us(4)), (Bytes(100), us(2))]);
        let known = |time| Some(Staging { time, guessed: false });
        assert_eq!(cost.staging(Bytes(0)), known(us(2)));
        assert_eq!(cost.staging(Bytes(200)), known(us(3)));
        assert_eq!(cost.staging(Bytes(300)), known(us(4)));
        assert_eq!(CopyCost::default().staging(Bytes(1)), None);
    }

    #[test]
    fn beyond_it_goes_on_at_a_rate_that_a_host_can_have() {
        let us = |n: i64| Nanos(n * 1000);
        let of = |points: &[(u64, i64)], bytes: u64| {
            let seen: Vec<(Bytes, Nanos)> = points.iter().map(|&(b, t)| (Bytes(b), us(t))).collect();
            CopyCost::fit(&seen).staging(Bytes(bytes)).unwrap()
        };
        // Small copies show no rate, however steep: 8 GB/s.
        let guess = of(&[(256, 12), (512, 15)], 8_000_512);
        assert_eq!(guess, Staging { time: us(1015), guessed: true });
        // Large ones do: 300 KB in 30 µs, 10 GB/s.
        assert_eq!(of(&[(100_000, 10), (400_000, 40)], 1_400_000).time, us(140));
        // Impossible rates are bounded: 0.3 GB/s counts as 3, and no time at all as 25.
        assert_eq!(of(&[(100_000, 10), (400_000, 1010)], 3_400_000).time, us(2010));
        assert_eq!(of(&[(100_000, 10), (400_000, 10)], 25_400_000).time, us(1010));
        assert_eq!(of(&[(400_000, 40)], 8_400_000).time, us(1040));
        assert!(of(&[(400_000, 40)], u64::MAX).time > us(1000));
    }

    #[test]
    fn one_slow_small_copy_does_not_raise_the_larger_ones() {
        let us = |n: i64| Nanos(n * 1000);
        let mut seen = vec![(Bytes(64), us(15))];
        seen.extend([(Bytes(4096), us(3)); 11]);
        seen.push((Bytes(8192), us(5)));
        let cost = CopyCost::fit(&seen);
        let of = |bytes| cost.staging(Bytes(bytes)).map(|copy| copy.time);
        assert_eq!((of(64), of(4096)), (Some(us(4)), Some(us(4))));
        assert_eq!(of(8192), Some(us(5)));
    }
}
