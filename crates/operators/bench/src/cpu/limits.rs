//! Limits of this machine, measured at the first case that needs them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use steptime_ops::{Cpu, limits};

use super::report::{Limits as Answer, RandomRows, Sequential};
use crate::Error;

/// Smallest and largest memory for measuring rates: below, the start of threads would dominate; above, nothing changes.
const SIZES: [usize; 2] = [4 << 20, 256 << 20];
const REPETITIONS: usize = 7;
/// Time to look for the best rate of arithmetic: on a shared machine, a few milliseconds may all fall into a busy
/// stretch.
const ARITHMETIC: Duration = Duration::from_millis(250);

/// Rates by the size of the memory, and those of random rows also by the size of a row.
#[derive(Default)]
pub struct Limits {
    fma: Option<f64>,
    sequential: BTreeMap<usize, f64>,
    random: BTreeMap<(usize, usize), f64>,
}

/// The power of two whose rates represent memory of this size.
fn rounded(bytes: usize) -> usize {
    bytes.clamp(SIZES[0], SIZES[1]).next_power_of_two()
}

impl Limits {
    /// Operations in a second.
    pub fn fma(&mut self, cpu: &Cpu) -> f64 {
        *self.fma.get_or_insert_with(|| {
            let (start, mut best) = (Instant::now(), 0.0);
            while best == 0.0 || start.elapsed() < ARITHMETIC {
                best = limits::fma_peak(cpu, REPETITIONS).per_second.max(best);
            }
            best
        })
    }

    /// Bytes in a second from memory of this size, or from the caches that hold it.
    pub fn sequential(&mut self, cpu: &Cpu, bytes: usize) -> Result<f64, Error> {
        let bytes = rounded(bytes);
        if let Some(&rate) = self.sequential.get(&bytes) {
            return Ok(rate);
        }
        let rate = limits::sequential_read(cpu, bytes, REPETITIONS)?.per_second;
        self.sequential.insert(bytes, rate);
        Ok(rate)
    }

    /// Bytes in a second, in rows of this size, at random places of memory of this size.
    pub fn random(&mut self, cpu: &Cpu, row_bytes: usize, bytes: usize) -> Result<f64, Error> {
        let key = (row_bytes, rounded(bytes));
        if let Some(&rate) = self.random.get(&key) {
            return Ok(rate);
        }
        let rate = limits::random_rows(cpu, key.0, key.1, REPETITIONS)?.per_second;
        self.random.insert(key, rate);
        Ok(rate)
    }

    /// Returns all measurements.
    pub fn answer(self) -> Answer {
        let sequential =
            self.sequential.into_iter().map(|(bytes, rate)| Sequential { bytes, gb_s: rate / 1e9 });
        let random = self.random.into_iter();
        Answer {
            fma_gflop_s: self.fma.map(|rate| rate / 1e9),
            sequential: sequential.collect(),
            random_rows: random
                .map(|((row_bytes, bytes), rate)| RandomRows { row_bytes, bytes, gb_s: rate / 1e9 })
                .collect(),
        }
    }
}
