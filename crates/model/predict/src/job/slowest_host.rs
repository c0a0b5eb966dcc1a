//! Expected slowest host among equal ones.
//!
//! Hosts of a job do the same work at slightly different pace, and the slowest determines the step: it never waits, and the others wait for
//! it. For ranks whose hosts were not recorded, the pace is unknown. So the determining rank is taken to be as slow as the expected slowest
//! of all: the more ranks, the slower.
//!
//! A host's variation from step to step (also 2.5 %) does not add up in the same way: ranks that wait for the slowest one are
//! ahead of it by its host's work after its last collective, and that is more.

use rayon::prelude::*;
use steptime_cost::PricedGraph;
use steptime_graph::{Job, RendezvousId, TiVec};
use steptime_trace::Nanos;

use super::RankSet;
use super::host_pace::paced;
use crate::uncertainty::uncertainty;

/// Half-width of 90 % of a normal distribution, in standard deviations.
const LEVEL: f64 = 1.645;
/// Range of the numeric integration, in standard deviations of one host, and number of its parts.
const REACH: f64 = 7.0;
const PARTS: i32 = 560;

/// One rank, or several with the same work.
#[derive(Debug, Clone, Copy)]
struct RankClass {
    /// Number of ranks.
    ranks: u32,
    /// Its step time without waiting for others.
    alone: Nanos,
    /// The same with a host that is slower by the standard deviation of hosts.
    slower: Nanos,
}

/// The rank that determines the step time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowestHost {
    /// Its index.
    pub rank: usize,
    /// Expected time of its host relative to a median host.
    pub times: f64,
    /// Half-width of 90 % of the step from this, logarithm.
    pub(super) half_width: f64,
}

impl RankSet {
    /// The rank that determines the step, where ranks' hosts vary by an unknown amount.
    pub(super) fn slowest(
        &self,
        priced: &[PricedGraph<'_>],
        moving: &TiVec<RendezvousId, Nanos>,
    ) -> Option<SlowestHost> {
        let others = paced(priced, &vec![slower(); priced.len()]);
        let of = |rank: usize| RankClass {
            ranks: self.alike[rank],
            alone: time_alone(&priced[rank], &self.job, rank, |at| moving[at]),
            slower: time_alone(&others[rank], &self.job, rank, |at| moving[at]),
        };
        slowest(&(0..priced.len()).into_par_iter().map(of).collect::<Vec<RankClass>>())
    }
}

/// Step time of one rank whose collectives take only as long as their data moves.
pub(super) fn time_alone(
    priced: &PricedGraph<'_>,
    job: &Job,
    rank: usize,
    moving: impl Fn(RendezvousId) -> Nanos,
) -> Nanos {
    let mut own = PricedGraph { demands: None, ..priced.clone() };
    let of = job.rendezvous_of_rank(rank, priced.graph);
    for (activity, at) in of.iter_enumerated() {
        if let Some(at) = at {
            own.durations[activity] = moving(*at);
        }
    }
    steptime_sim::Timeline::simulate(&own).period
}

/// Factor of a host that is slower than a median one by the standard deviation.
fn slower() -> f64 {
    uncertainty().ranks.host_spread.exp()
}

/// The expected slowest of these; `None` where there is only one rank, or where hosts do not affect the step.
fn slowest(all: &[RankClass]) -> Option<SlowestHost> {
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
    // The first of equal ones.
    let rank = (0..all.len()).rev().max_by(latest)?;
    let own = steps[rank];
    if all.iter().map(|own| own.ranks).sum::<u32>() < 2 || own.deviation <= 0.0 {
        return None;
    }
    let [mean, deviation] = largest(&steps);
    let times = (uncertainty().ranks.host_spread * (mean - own.mean).max(0.0) / own.deviation).exp();
    Some(SlowestHost { rank, times, half_width: LEVEL * deviation })
}

/// `count` numbers drawn from a normal distribution.
#[derive(Debug, Clone, Copy)]
struct Normal {
    count: f64,
    mean: f64,
    deviation: f64,
}

/// Mean and standard deviation of the largest of all.
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
    // For the excess over `from`: the mean is the integral of the probability to be higher, the mean square twice that weighted by the distance.
    let (mut first, mut second) = (0.0, 0.0);
    for at in 0..PARTS {
        let over = (f64::from(at) + 0.5) * part;
        let chance = above(from + over) * part;
        first += chance;
        second += 2.0 * over * chance;
    }
    [from + first, (second - first * first).max(0.0).sqrt()]
}

/// Logarithm of the probability that a normal number is below `x` deviations from its mean.
fn log_below(x: f64) -> f64 {
    let tail = upper_tail(x.abs());
    if x >= 0.0 { (-tail).ln_1p() } else { tail.max(f64::MIN_POSITIVE).ln() }
}

/// Probability that a normal number is above `x`, which must not be negative: Abramowitz and Stegun, 26.2.17.
fn upper_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let polynomial = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let sum = polynomial.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest_of(count: f64) -> [f64; 2] {
        largest(&[Normal { count, mean: 0.0, deviation: 1.0 }])
    }

    #[test]
    fn the_largest_of_many_is_what_tables_say() {
        // Expected values and deviations of the largest of n standard normal numbers.
        for (count, mean, deviation) in
            [(1.0, 0.0, 1.0), (2.0, 0.5642, 0.8256), (4.0, 1.0294, 0.7012), (8.0, 1.4236, 0.6107)]
        {
            let [found, apart] = largest_of(count);
            assert!(
                (found - mean).abs() < 1e-3 && (apart - deviation).abs() < 2e-3,
                "{count}: {found} {apart}"
            );
        }
        assert!((largest_of(1000.0)[0] - 3.2414).abs() < 2e-3);
        // Four equal ones are like two and two.
        let pair = Normal { count: 2.0, mean: 0.0, deviation: 1.0 };
        assert!((largest(&[pair, pair])[0] - largest_of(4.0)[0]).abs() < 1e-9);
        // One that is far behind does not matter.
        let behind = Normal { count: 4.0, mean: -20.0, deviation: 1.0 };
        assert!((largest(&[pair, behind])[0] - largest_of(2.0)[0]).abs() < 1e-3);
    }

    #[test]
    fn the_slowest_of_more_ranks_is_slower() {
        let by_host = |ranks: u32, alone: i64| RankClass {
            ranks,
            alone: Nanos(alone),
            slower: Nanos((alone as f64 * slower()).round() as i64),
        };
        let times = |all: &[RankClass]| slowest(all).expect("hosts decide").times;
        assert!(
            (times(&[by_host(4, 5_000_000)]).ln() - 1.0294 * uncertainty().ranks.host_spread).abs() < 1e-4
        );
        assert!(
            (times(&[by_host(1, 5_000_000); 4]).ln() - 1.0294 * uncertainty().ranks.host_spread).abs() < 1e-4
        );
        assert!(times(&[by_host(8192, 5_000_000)]) > times(&[by_host(64, 5_000_000)]));
        // A rank that is late anyway does not need a slower host.
        let late = slowest(&[by_host(3, 4_000_000), by_host(1, 5_000_000)]).expect("hosts decide");
        assert_eq!(late.rank, 1);
        assert!(late.times < 1.001, "{late:?}");
        assert_eq!(slowest(&[by_host(1, 5_000_000)]), None, "one rank waits for nobody");
        // Where the device determines the step, hosts do not affect it.
        let device = RankClass { ranks: 4, alone: Nanos(5_000_000), slower: Nanos(5_000_000) };
        assert_eq!(slowest(&[device]), None);
    }
}
