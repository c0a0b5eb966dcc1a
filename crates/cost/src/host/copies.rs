//! What the host pays to stage a pageable copy, by its size.

use serde::{Deserialize, Serialize};
use steptime_trace::{Bytes, Nanos};

/// Host time of a staged copy at sizes that were measured; linear between, and beyond on the last slope.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CopyCost {
    /// Size in bytes and time in microseconds, by rising size.
    points: Vec<(u64, f64)>,
}

impl CopyCost {
    /// From observations of single copies: the median of each size; where a larger copy was measured cheaper,
    /// both get their mean, weighted by how often they were seen (isotonic regression).
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

    /// The host time of a copy; `None` where nothing was measured.
    pub fn of(&self, bytes: Bytes) -> Option<Nanos> {
        let size = bytes.0 as f64;
        let (&first, &last) = (self.points.first()?, self.points.last()?);
        let after = self.points.partition_point(|&(b, _)| b < bytes.0);
        let us = match after {
            0 => first.1,
            i if i < self.points.len() => between(self.points[i - 1], self.points[i], size),
            _ => match self.points.len().checked_sub(2) {
                Some(before) => between(self.points[before], last, size),
                None => last.1,
            },
        };
        Some(Nanos::from_micros_f64(us))
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
    fn cost_is_linear_between_and_beyond() {
        let us = |n: i64| Nanos(n * 1000);
        let cost = CopyCost::fit(&[(Bytes(100), us(2)), (Bytes(300), us(4)), (Bytes(100), us(2))]);
        assert_eq!(cost.of(Bytes(0)), Some(us(2)));
        assert_eq!(cost.of(Bytes(200)), Some(us(3)));
        assert_eq!(cost.of(Bytes(500)), Some(us(6)));
        assert_eq!(CopyCost::default().of(Bytes(1)), None);
    }

    #[test]
    fn one_slow_small_copy_does_not_raise_the_larger_ones() {
        let us = |n: i64| Nanos(n * 1000);
        let mut seen = vec![(Bytes(64), us(15))];
        seen.extend([(Bytes(4096), us(3)); 11]);
        seen.push((Bytes(8192), us(5)));
        let cost = CopyCost::fit(&seen);
        assert_eq!((cost.of(Bytes(64)), cost.of(Bytes(4096))), (Some(us(4)), Some(us(4))));
        assert_eq!(cost.of(Bytes(8192)), Some(us(5)));
    }
}
