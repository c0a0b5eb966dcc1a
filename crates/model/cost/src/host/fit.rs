//! Fits a host profile on the recordings of several models.

mod delays;

use rustc_hash::FxHashMap;
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::captured::Captured;
use super::edge::{EdgeKey, Edges};
use super::own;
use super::probe::{HostPace, Probe};
use super::profile::{Gap, HostProfile, RecordingSpeed};
use super::profiler::ProfilerCost;
use super::speed::Elasticity;
use super::warmth::{self, Class, Warmth};
use crate::error::Error;
use delays::{copies, coupling};

/// A recording to fit on.
#[derive(Debug, Clone)]
pub struct Training<'g> {
    /// Its name.
    pub name: String,
    /// Its execution graph.
    pub graph: &'g StepGraph,
    /// Whether it is known to be out of line: it is listed, but not fitted on.
    pub excluded: bool,
    /// Whether it was made on the host that the profile is for. Others add gaps, brought to that host's speed.
    pub home: bool,
    /// What its host's probe measured.
    pub probe: Option<Probe>,
    /// What a pulse between two of its profiled steps took: it is in the trace, and in no step.
    pub between: Nanos,
}

/// Strength of the belief that warmth makes no difference, in microseconds of measured gaps.
const PRIOR_US: f64 = 1000.0;
/// Rounds of the alternating fit; it settles in about forty.
const ROUNDS: usize = 60;
/// Gaps of a step of ordinary length: the unit of a gap's weight.
const TYPICAL_GAPS: f64 = 2500.0;
/// Of more gaps than these ...
const MANY: usize = 3000;
/// ... those with less weight are left out: a wider key knows as much, and a profile is read at every start.
const RARE: f64 = 2.0;
/// A host's speed is never taken to be known better than this (relative, half-width of 90 %).
const LEAST_SPREAD: f64 = 0.06;

/// A gap: its key in the common list, how warm it is, and its time in microseconds.
type Observation = (u32, Class, f64);

/// One recording's measured gaps.
struct RecordingGaps {
    gaps: Vec<Observation>,
    slowness: f64,
    /// Makes a short step count as much as a long one.
    weight: f64,
}

/// Fits a profile: `gap = slowness of the recording x time when warm x factor of warmth`.
///
/// The three sets of factors are found in turn, each so that sums are kept, until they settle. A recording
/// made while its host was slow thus gets a high slowness and does not bend the times. `profiler` is taken off
/// the gaps; `profiler_fresh` is kept for predictions of processes that were never profiled.
///
/// # Errors
/// Where no recording has a measured step.
pub fn fit(
    recordings: &[Training<'_>],
    profiler: &ProfilerCost,
    profiler_fresh: &ProfilerCost,
) -> Result<HostProfile, Error> {
    let used: Vec<&Training<'_>> = recordings.iter().filter(|r| !r.excluded).collect();
    let mut keys: Vec<EdgeKey> = Vec::new();
    let mut index: FxHashMap<EdgeKey, u32> = FxHashMap::default();
    let mut observed: Vec<RecordingGaps> =
        used.iter().map(|r| observe(r, profiler, &mut keys, &mut index)).collect();
    if observed.iter().all(|o| o.gaps.is_empty()) {
        return Err(Error::NothingToFit);
    }
    let mut warmth = Warmth::default();
    let mut base = vec![0.0; keys.len()];
    for round in 0..ROUNDS {
        if round == ROUNDS / 2 {
            // Recording an event takes longer on a slower host, too.
            for (o, recording) in observed.iter_mut().zip(&used) {
                let slowness = o.slowness;
                *o = observe(recording, &profiler.scaled(slowness), &mut keys, &mut index);
                o.slowness = slowness;
            }
        }
        base = ratios(keys.len(), &observed, |o, &(key, class, us)| {
            (key as usize, us, warmth.of(class) * o.slowness)
        })
        .iter()
        .map(|&(us, weight)| if weight > 0.0 { us / weight } else { 0.0 })
        .collect();
        let expected = |o: &RecordingGaps, key: u32| base[key as usize] * o.slowness;
        let sums = ratios(warmth.by_distance.len(), &observed, |o, &(key, class, us)| {
            let factor = warmth.by_occurrence[class.occurrence as usize];
            (class.distance as usize, us, expected(o, key) * factor)
        });
        set(&mut warmth.by_distance, &sums);
        let sums = ratios(warmth.by_occurrence.len(), &observed, |o, &(key, class, us)| {
            let factor = warmth.by_distance[class.distance as usize];
            (class.occurrence as usize, us, expected(o, key) * factor)
        });
        set(&mut warmth.by_occurrence, &sums);
        let slowness: Vec<f64> = observed
            .iter()
            .map(|o| {
                let (measured, expected) = o.gaps.iter().fold((0.0, 0.0), |sum, &(key, class, us)| {
                    (sum.0 + us, sum.1 + base[key as usize] * warmth.of(class))
                });
                if expected > 0.0 { measured / expected } else { 1.0 }
            })
            .collect();
        let typical = median_of(&at_home(&used, &slowness));
        for (o, s) in observed.iter_mut().zip(&slowness) {
            o.slowness = s / typical;
        }
    }
    let weights = ratios(keys.len(), &observed, |_, &(key, class, _)| (key as usize, 0.0, warmth.of(class)));
    let many = keys.len() > MANY;
    let mut gaps: Vec<Gap> = keys
        .into_iter()
        .enumerate()
        .filter(|&(key, _)| weights[key].1 > if many { RARE } else { 0.0 })
        .map(|(key, name)| Gap { key: name, us: base[key], weight: weights[key].1 })
        .collect();
    gaps.sort_by(|a, b| a.key.cmp(&b.key));
    let slowness: Vec<f64> = observed.iter().map(|o| o.slowness).collect();
    let known = spread(&at_home(&used, &slowness));
    let mut speeds = slowness.iter();
    Ok(HostProfile {
        recordings: recordings
            .iter()
            .map(|r| RecordingSpeed {
                name: r.name.clone(),
                slowness: if r.excluded {
                    1.0
                } else {
                    speeds.next().map_or(1.0, |s| (s * 1000.0).round() / 1000.0)
                },
                excluded: r.excluded,
                fingerprint: String::new(),
            })
            .collect(),
        profiler: *profiler,
        profiler_fresh: *profiler_fresh,
        attached: ProfilerCost::ATTACHED,
        elasticity: Elasticity::default(),
        coupling: coupling(&used),
        captured: Captured::default(),
        copies: copies(&used.iter().copied().filter(|r| r.home).collect::<Vec<_>>(), profiler),
        warmth: rounded(warmth),
        gaps,
        spread: known,
        machine: String::new(),
        reference: reference(&used, &slowness),
        pace: HostPace::default(),
    })
}

/// The slowness of the recordings that were made on the profile's host; of all, where none of these is left.
fn at_home(used: &[&Training<'_>], slowness: &[f64]) -> Vec<f64> {
    let anywhere = !used.iter().any(|r| r.home);
    used.iter().zip(slowness).filter(|(r, _)| r.home || anywhere).map(|(_, &s)| s).collect()
}

/// What a probe would measure on the profile's host: each piece as probes found it, over how slow their hosts were.
fn reference(used: &[&Training<'_>], slowness: &[f64]) -> Probe {
    let scaled: Vec<[f64; 5]> = used
        .iter()
        .zip(slowness)
        .filter_map(|(r, &s)| Some(r.probe?.numbers().map(|(_, us)| us / s)))
        .collect();
    if scaled.is_empty() {
        return Probe::default();
    }
    let typical = |piece: usize| {
        let us = median_of(&scaled.iter().map(|probe| probe[piece]).collect::<Vec<f64>>());
        (us * 100.0).round() / 100.0
    };
    Probe::of_array(std::array::from_fn(typical))
}

fn observe(
    recording: &Training<'_>,
    profiler: &ProfilerCost,
    keys: &mut Vec<EdgeKey>,
    index: &mut FxHashMap<EdgeKey, u32>,
) -> RecordingGaps {
    let graph = recording.graph;
    let edges = Edges::of_graph(graph);
    let classes = warmth::classes(graph, &edges);
    let common: Vec<u32> = edges
        .keys()
        .map(|key| {
            *index.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                keys.len() as u32 - 1
            })
        })
        .collect();
    let gaps = own::gaps(graph, profiler)
        .into_iter_enumerated()
        .filter(|&(mark, _)| !own::is_staged_copy(graph, mark))
        .filter_map(|(mark, gap)| {
            let key = common[edges.of_mark[mark] as usize];
            let gap = own::take_off_pulse(graph, mark, gap?, recording.between);
            Some((key, classes[mark], gap.as_micros().max(0.0)))
        });
    let gaps: Vec<Observation> = gaps.collect();
    let weight = TYPICAL_GAPS / gaps.len().max(1) as f64;
    RecordingGaps { gaps, slowness: 1.0, weight }
}

/// For each slot the sums of measured and of expected time.
fn ratios(
    slots: usize,
    observed: &[RecordingGaps],
    term: impl Fn(&RecordingGaps, &Observation) -> (usize, f64, f64),
) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); slots];
    for recording in observed {
        for gap in &recording.gaps {
            let (slot, measured, expected) = term(recording, gap);
            sums[slot].0 += recording.weight * measured;
            sums[slot].1 += recording.weight * expected;
        }
    }
    sums
}

/// Sets factors to measured over expected; a class that was never seen keeps its factor.
fn set(factors: &mut [f64], sums: &[(f64, f64)]) {
    for (factor, &(measured, expected)) in factors.iter_mut().zip(sums) {
        if expected > 0.0 {
            *factor = (measured + PRIOR_US) / (expected + PRIOR_US);
        }
    }
}

fn rounded(mut warmth: Warmth) -> Warmth {
    let factors = warmth.by_distance.iter_mut().chain(&mut warmth.by_occurrence);
    factors.for_each(|factor| *factor = (*factor * 1000.0).round() / 1000.0);
    warmth
}

fn median_of(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Nine of ten hosts lie within this of the typical one.
fn spread(slowness: &[f64]) -> f64 {
    let mut away: Vec<f64> = slowness.iter().map(|s| s.ln().abs()).collect();
    away.sort_by(f64::total_cmp);
    let at = ((away.len() as f64 * 0.9).ceil() as usize).clamp(1, away.len()) - 1;
    let widest = away[at].max(LEAST_SPREAD);
    (widest * 1000.0).round() / 1000.0
}
