//! Properties of the cache, from rows in different states of it, without any model of kernels.

use std::collections::BTreeMap;

use steptime_aten::Kernel;

use crate::device::learn::score::quantile;
use crate::device::observation::Observation;

/// Least ratio of a cold case's time to a warm one's for the case to be used.
const TELLING: f64 = 1.25;
/// Least number of cases for an estimate.
const LEAST: usize = 20;

/// Observed behaviour of the second-level cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// Part of it that holds reused data, bytes.
    pub effective_bytes: f64,
    /// Steepness of the fall of residency beyond, see [`CacheSpec`](crate::device::spec::CacheSpec).
    pub sharpness: f64,
    /// Rate of kernels whose operands are in it, GB/s.
    pub rate_gb_s: f64,
    /// Source of the values.
    pub source: String,
}

/// Measures a cache of a given size in front of memory of a given rate, from kernels bound by memory.
///
/// If a case was measured cold, warm, and after writing some bytes, the last time is between the first two by the share
/// of its operands that have left the cache: that share, over the reuse distance, gives the size. With too few such cases
/// the data sheet's size is halved, and the rate is twice memory's, as observed on other GPUs.
#[must_use]
pub fn measure(observations: &[Observation], bytes: f64, memory_gb_s: f64) -> Cache {
    let mut cases: BTreeMap<(u32, &str), Vec<&Observation>> = BTreeMap::new();
    for row in observations.iter().filter(|row| streams(&row.call.kernel)) {
        cases.entry((row.case, row.op.as_str())).or_default().push(row);
    }
    let mut shares: Vec<(f64, f64)> = Vec::new();
    let mut rates: Vec<f64> = Vec::new();
    for rows in cases.values() {
        let footprint = rows[0].call.footprint();
        let distance = |row: &Observation| row.ctx.reuse.first().copied().flatten();
        let Some(cold) = rows.iter().find(|row| distance(row).is_none()) else { continue };
        let Some(warm) = rows.iter().find(|row| distance(row) == Some(footprint)) else { continue };
        let (cold, warm) = (cold.time.as_micros(), warm.time.as_micros());
        if (bytes * 0.1..bytes * 0.3).contains(&(footprint as f64)) {
            rates.push(footprint as f64 / warm / 1e3);
        }
        if cold < warm * TELLING {
            continue;
        }
        for row in rows {
            if let Some(distance) = distance(row).filter(|&distance| distance > footprint) {
                let gone = ((row.time.as_micros() - warm) / (cold - warm)).clamp(0.0, 1.0);
                shares.push((distance as f64, gone));
            }
        }
    }
    let rate_gb_s =
        if rates.len() < LEAST { 2.0 * memory_gb_s } else { quantile(&rates, 0.9).max(memory_gb_s) };
    if shares.len() < LEAST {
        let source =
            "half of its size, and twice the rate of memory: the sweep has too few rows to tell".into();
        return Cache { effective_bytes: bytes / 2.0, sharpness: 4.0, rate_gb_s, source };
    }
    let (effective_bytes, sharpness) = best(&shares, bytes);
    let source = format!("{} rows measured after other memory was written", shares.len());
    Cache { effective_bytes, sharpness, rate_gb_s, source }
}

/// Returns the size and sharpness with the least absolute error.
fn best(shares: &[(f64, f64)], bytes: f64) -> (f64, f64) {
    let mut best = (f64::INFINITY, (bytes / 2.0, 4.0));
    for size in (10..=80).map(|step| bytes * f64::from(step) * 0.02) {
        for sharpness in [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0] {
            let gone = |distance: f64| 1.0 - 1.0 / (1.0 + (distance / size).powf(sharpness));
            let error: f64 = shares.iter().map(|&(distance, share)| (gone(distance) - share).abs()).sum();
            if error < best.0 {
                best = (error, (size, sharpness));
            }
        }
    }
    best.1
}

/// Whether a kernel does little but move memory once.
fn streams(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Elementwise(_) | Kernel::Reduce(_) | Kernel::DeviceCopy | Kernel::Concat(_))
}

/// Returns the duration of the shortest kernels, µs: their first percentile.
#[must_use]
pub fn floor_us(observations: &[Observation]) -> f64 {
    shortest(observations, |kernel| {
        !matches!(kernel, Kernel::Transfer(_) | Kernel::DeviceCopy | Kernel::Memset)
    })
}

/// Returns the duration of the shortest copies between host and device, µs.
#[must_use]
pub fn copy_floor_us(observations: &[Observation]) -> f64 {
    shortest(observations, |kernel| matches!(kernel, Kernel::Transfer(_)))
}

fn shortest(observations: &[Observation], counts: impl Fn(&Kernel) -> bool) -> f64 {
    let times = observations.iter().filter(|row| counts(&row.call.kernel)).map(|row| row.time.as_micros());
    let times: Vec<f64> = times.collect();
    // Without any, one microsecond: no GPU's kernels are much shorter.
    if times.is_empty() { 1.0 } else { quantile(&times, 0.01) }
}
