//! Times as a histogram on a logarithmic scale, which can be merged.
//!
//! Bin `i` holds times in `(g^(i-1), g^i]` nanoseconds with `g = (1 + a) / (1 - a)` and `a` = [`ACCURACY`]: the scheme of
//! Masson, Rim and Lee, "DDSketch" (PVLDB 12, 2019), section 2.1. Any quantile is then known to within `a` of itself,
//! and the sketch of two samples together is the sum of their sketches.

use steptime_trace::Nanos;

/// Maximum relative error of a quantile.
pub const ACCURACY: f64 = 0.01;

/// Base of the bins, `(1 + a) / (1 - a)`.
const BASE: f64 = (1.0 + ACCURACY) / (1.0 - ACCURACY);

/// Count, sum, minimum, maximum, sum of squares and a histogram of times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sketch {
    /// Number of times.
    pub count: u64,
    /// Sum, nanoseconds.
    pub sum: i64,
    /// Minimum, nanoseconds; 0 without times.
    pub min: i64,
    /// Maximum, nanoseconds; 0 without times.
    pub max: i64,
    /// Sum of squares, square nanoseconds.
    pub sum_squares: f64,
    /// Non-empty bins, in order, with their counts.
    pub bins: Vec<(u16, u32)>,
}

impl Sketch {
    /// Adds a time. A time below a nanosecond counts as one nanosecond in the histogram.
    pub fn add(&mut self, time: Nanos) {
        let nanos = time.0;
        (self.min, self.max) = match self.count {
            0 => (nanos, nanos),
            _ => (self.min.min(nanos), self.max.max(nanos)),
        };
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.sum_squares += nanos as f64 * nanos as f64;
        self.put(bin(nanos), 1);
    }

    /// Adds all times of another sketch.
    pub fn merge(&mut self, other: &Sketch) {
        if other.count == 0 {
            return;
        }
        (self.min, self.max) = match self.count {
            0 => (other.min, other.max),
            _ => (self.min.min(other.min), self.max.max(other.max)),
        };
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_squares += other.sum_squares;
        other.bins.iter().for_each(|&(bin, count)| self.put(bin, count));
    }

    /// Returns the quantile `q`, nanoseconds, to within [`ACCURACY`]; `None` without times.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = q.clamp(0.0, 1.0) * (self.count.checked_sub(1)?) as f64;
        let mut below = 0u64;
        let holding = self.bins.iter().find(|(_, count)| {
            below += u64::from(*count);
            below as f64 > rank
        });
        let (bin, _) = holding.or(self.bins.last())?;
        Some(2.0 * BASE.powi(i32::from(*bin)) / (BASE + 1.0))
    }

    fn put(&mut self, bin: u16, count: u32) {
        match self.bins.binary_search_by_key(&bin, |&(bin, _)| bin) {
            Ok(at) => self.bins[at].1 = self.bins[at].1.saturating_add(count),
            Err(at) => self.bins.insert(at, (bin, count)),
        }
    }
}

/// Returns the bin of a time: at most 2 184, that of the longest possible time.
fn bin(nanos: i64) -> u16 {
    let logarithm = (nanos.max(1) as f64).ln() / BASE.ln();
    logarithm.ceil() as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch(times: &[i64]) -> Sketch {
        let mut sketch = Sketch::default();
        times.iter().for_each(|&time| sketch.add(Nanos(time)));
        sketch
    }

    proptest! {
        #[test]
        fn merged_sketches_are_the_sketch_of_all(one in times(), other in times()) {
            let mut merged = sketch(&one);
            merged.merge(&sketch(&other));
            let all = sketch(&[one, other].concat());
            prop_assert_eq!(&merged.bins, &all.bins);
            prop_assert_eq!(
                (merged.count, merged.sum, merged.min, merged.max),
                (all.count, all.sum, all.min, all.max)
            );
            prop_assert!((merged.sum_squares - all.sum_squares).abs() <= 1e-12 * all.sum_squares);
        }

        #[test]
        fn quantiles_are_within_the_accuracy(mut all in times(), q in 0.0..=1.0) {
            prop_assume!(!all.is_empty());
            let found = sketch(&all).quantile(q).expect("there are some");
            all.sort_unstable();
            let exact = all[(q * (all.len() - 1) as f64).floor() as usize].max(1) as f64;
            prop_assert!((found - exact).abs() <= (ACCURACY + 1e-9) * exact, "{} for {}", found, exact);
        }
    }

    fn times() -> impl Strategy<Value = Vec<i64>> {
        let each = prop_oneof![0i64..10, 1_000i64..100_000, 1_000_000i64..10_000_000_000];
        proptest::collection::vec(each, 0..200)
    }

    #[test]
    fn the_longest_time_has_a_bin_and_nothing_has_no_quantile() {
        assert!(bin(i64::MAX) <= 2184 && bin(0) == 0 && bin(-5) == 0);
        assert_eq!(Sketch::default().quantile(0.5), None);
    }
}
