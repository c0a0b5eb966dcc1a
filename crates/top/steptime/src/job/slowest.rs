//! The slowest host of many alike.
//!
//! Hosts of a job run the same at a pace of their own, and the slowest decides: it never waits, the others wait for it. Of ranks whose
//! hosts were not recorded the pace is not known. So the rank that decides is taken to be as slow as the slowest of all is expected to
//! be, the more ranks the slower.
//!
//! What a host's pace changes from step to step (2.5 %, too) does not add up in the same way: ranks that wait for the slowest are
//! ahead of it by what its host does after its last collective, and that is more.

use rayon::prelude::*;
use steptime_cost::PricedGraph;
use steptime_graph::{Job, RendezvousId, TiVec};
use steptime_trace::Nanos;

use super::Ranks;
use super::predicted::paced;

/// How far hosts of a job's ranks lie apart when they run the same: standard deviation of the logarithm. Hosts of 28 ranks of eight
/// recorded jobs between their first and third collective; by how much the last one is late it would be 0.020 of two ranks,
/// 0.031 of four.
const APART: f64 = 0.025;
/// 90 % of a normal distribution are within so many standard deviations.
const LEVEL: f64 = 1.645;
/// Over so many standard deviations of one host, in so many parts, the slowest is looked for.
const REACH: f64 = 7.0;
const PARTS: i32 = 560;

/// One rank, or several that do the same.
#[derive(Debug, Clone, Copy)]
struct Alike {
    /// How many.
    ranks: u32,
    /// Its step where it waits for no other.
    alone: Nanos,
    /// The same with a host that is slower by [`APART`].
    slower: Nanos,
}

/// The rank that decides how long the step takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowestHost {
    /// Its place.
    pub rank: usize,
    /// How many times as long as a middle one its host is expected to take.
    pub times: f64,
    /// Half-width of 90 % of the step that is due to it, logarithm.
    pub(super) half_width: f64,
}

impl Ranks {
    /// The rank that decides, where ranks' hosts are apart by what is not known of them.
    pub(super) fn slowest(
        &self,
        priced: &[PricedGraph<'_>],
        moving: &TiVec<RendezvousId, Nanos>,
    ) -> Option<SlowestHost> {
        let others = paced(priced, &vec![slower(); priced.len()]);
        let of = |rank: usize| Alike {
            ranks: self.alike[rank],
            alone: alone(&priced[rank], &self.job, rank, |at| moving[at]),
            slower: alone(&others[rank], &self.job, rank, |at| moving[at]),
        };
        slowest(&(0..priced.len()).into_par_iter().map(of).collect::<Vec<Alike>>())
    }
}

/// The step of one rank whose collectives take no longer than data needs to move.
pub(super) fn alone(
    priced: &PricedGraph<'_>,
    job: &Job,
    rank: usize,
    moving: impl Fn(RendezvousId) -> Nanos,
) -> Nanos {
    let mut own = PricedGraph { demands: None, ..priced.clone() };
    let of = job.of_rank(rank, priced.graph);
    for (activity, at) in of.iter_enumerated() {
        if let Some(at) = at {
            own.durations[activity] = moving(*at);
        }
    }
    steptime_sim::Timeline::simulate(&own).period
}

/// A host that is slower than a middle one by what hosts are apart.
fn slower() -> f64 {
    APART.exp()
}

/// The slowest of these; `None` where there is one rank alone, or hosts decide nothing.
fn slowest(all: &[Alike]) -> Option<SlowestHost> {
    let log = |time: Nanos| (time.0.max(1) as f64).ln();
    let steps: Vec<Normal> = all
        .iter()
        .map(|own| Normal {
            count: f64::from(own.ranks),
            mean: log(own.alone),
            deviation: (log(own.slower) - log(own.alone)).max(0.0),
        })
        .collect();
    let latest = |one: &usize, other: &usize| steps[*one].mean.total_cmp(&steps[*other].mean);
    // Of equal ones the first.
    let rank = (0..all.len()).rev().max_by(latest)?;
    let own = steps[rank];
    if all.iter().map(|own| own.ranks).sum::<u32>() < 2 || own.deviation <= 0.0 {
        return None;
    }
    let [mean, deviation] = largest(&steps);
    let times = (APART * (mean - own.mean).max(0.0) / own.deviation).exp();
    Some(SlowestHost { rank, times, half_width: LEVEL * deviation })
}

/// So many numbers drawn from a normal distribution.
#[derive(Debug, Clone, Copy)]
struct Normal {
    count: f64,
    mean: f64,
    deviation: f64,
}

/// The mean and the standard deviation of the largest of all.
fn largest(all: &[Normal]) -> [f64; 2] {
    let highest = |of: &dyn Fn(&Normal) -> f64| all.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let (from, to) =
        (highest(&|own| own.mean - REACH * own.deviation), highest(&|own| own.mean + REACH * own.deviation));
    let part = (to - from) / f64::from(PARTS);
    let above = |x: f64| {
        let below: f64 =
            all.iter().map(|own| own.count * log_below((x - own.mean) / own.deviation.max(1e-9))).sum();
        -below.exp_m1()
    };
    // Of what is above `from`: the mean is the integral of the chance to be higher, the mean square twice that by the distance.
    let (mut first, mut second) = (0.0, 0.0);
    for at in 0..PARTS {
        let over = (f64::from(at) + 0.5) * part;
        let chance = above(from + over) * part;
        first += chance;
        second += 2.0 * over * chance;
    }
    [from + first, (second - first * first).max(0.0).sqrt()]
}

/// The logarithm of the chance that a normal number is below `x` deviations from its mean.
fn log_below(x: f64) -> f64 {
    let tail = upper_tail(x.abs());
    if x >= 0.0 { (-tail).ln_1p() } else { tail.max(f64::MIN_POSITIVE).ln() }
}

/// The chance that a normal number is above `x`, which is not negative: Abramowitz and Stegun, 26.2.17.
fn upper_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let polynomial = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let sum = polynomial.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: f64) -> [f64; 2] {
        largest(&[Normal { count, mean: 0.0, deviation: 1.0 }])
    }

    #[test]
    fn the_largest_of_many_is_what_tables_say() {
        // Expected values and deviations of the largest of n standard normal numbers.
        for (count, mean, deviation) in
            [(1.0, 0.0, 1.0), (2.0, 0.5642, 0.8256), (4.0, 1.0294, 0.7012), (8.0, 1.4236, 0.6107)]
        {
            let [found, apart] = of(count);
            assert!(
                (found - mean).abs() < 1e-3 && (apart - deviation).abs() < 2e-3,
                "{count}: {found} {apart}"
            );
        }
        assert!((of(1000.0)[0] - 3.2414).abs() < 2e-3);
        // Four alike are as two and two.
        let pair = Normal { count: 2.0, mean: 0.0, deviation: 1.0 };
        assert!((largest(&[pair, pair])[0] - of(4.0)[0]).abs() < 1e-9);
        // What is far behind does not matter.
        let behind = Normal { count: 4.0, mean: -20.0, deviation: 1.0 };
        assert!((largest(&[pair, behind])[0] - of(2.0)[0]).abs() < 1e-3);
    }

    #[test]
    fn the_slowest_of_more_ranks_is_slower() {
        let by_host = |ranks: u32, alone: i64| Alike {
            ranks,
            alone: Nanos(alone),
            slower: Nanos((alone as f64 * slower()).round() as i64),
        };
        let times = |all: &[Alike]| slowest(all).expect("hosts decide").times;
        assert!((times(&[by_host(4, 5_000_000)]).ln() - 1.0294 * APART).abs() < 1e-4);
        assert!((times(&[by_host(1, 5_000_000); 4]).ln() - 1.0294 * APART).abs() < 1e-4);
        assert!(times(&[by_host(8192, 5_000_000)]) > times(&[by_host(64, 5_000_000)]));
        // A rank that is late anyway is late by itself.
        let late = slowest(&[by_host(3, 4_000_000), by_host(1, 5_000_000)]).expect("hosts decide");
        assert_eq!(late.rank, 1);
        assert!(late.times < 1.001, "{late:?}");
        assert_eq!(slowest(&[by_host(1, 5_000_000)]), None, "one rank waits for nobody");
        // Where the device decides, no host does.
        let device = Alike { ranks: 4, alone: Nanos(5_000_000), slower: Nanos(5_000_000) };
        assert_eq!(slowest(&[device]), None);
    }
}
