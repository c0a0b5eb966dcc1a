//! Factors of a gap's time: its kind, its warmth, and the slowness of the recording's host.

use rustc_hash::FxHashMap;

use super::{Training, at_home, median_of};
use crate::host::gap_key::{EdgeKey, Edges};
use crate::host::profiler::ProfilerCost;
use crate::host::recorded_gaps;
use crate::host::warmth::{self, Class, Warmth};

/// Strength of the prior that warmth makes no difference, in microseconds of measured gaps.
const PRIOR_US: f64 = 1000.0;
/// Number of rounds of the alternating fit; it settles in about forty.
const ROUNDS: usize = 60;
/// Number of gaps of a typical step: the unit of a gap's weight.
const TYPICAL_GAPS: f64 = 2500.0;

/// A gap: its key in the common list, its warmth, and its time in microseconds.
type Observation = (u32, Class, f64);

/// Measured gaps of one recording.
struct RecordingGaps {
    gaps: Vec<Observation>,
    slowness: f64,
    /// Weight that makes a short step count as much as a long one.
    weight: f64,
}

/// Keys of all recordings, in the order of their first appearance.
#[derive(Default)]
struct Keys {
    list: Vec<EdgeKey>,
    index: FxHashMap<EdgeKey, u32>,
}

impl Keys {
    /// Returns the index of a key in the list, and adds it if it is new.
    fn place(&mut self, key: EdgeKey) -> u32 {
        let list = &mut self.list;
        *self.index.entry(key).or_insert_with_key(|key| {
            list.push(key.clone());
            list.len() as u32 - 1
        })
    }
}

/// Three sets of factors whose product is a gap.
pub(super) struct Factors {
    pub(super) keys: Vec<EdgeKey>,
    /// Time when warm of each key, microseconds.
    pub(super) base: Vec<f64>,
    pub(super) warmth: Warmth,
    recordings: Vec<RecordingGaps>,
}

impl Factors {
    /// Finds the factors in turn, each so that sums are kept, until they settle. `None` if nothing was measured.
    pub(super) fn fit(used: &[&Training<'_>], profiler: &ProfilerCost) -> Option<Factors> {
        let mut keys = Keys::default();
        let recordings: Vec<RecordingGaps> = used.iter().map(|r| observe(r, profiler, &mut keys)).collect();
        if recordings.iter().all(|recording| recording.gaps.is_empty()) {
            return None;
        }
        let base = vec![0.0; keys.list.len()];
        let mut found = Factors { keys: Vec::new(), base, warmth: Warmth::default(), recordings };
        for round in 0..ROUNDS {
            if round == ROUNDS / 2 {
                // Recording an event also takes longer on a slower host.
                for (recording, of) in found.recordings.iter_mut().zip(used) {
                    let slowness = recording.slowness;
                    *recording = observe(of, &profiler.scaled(slowness), &mut keys);
                    recording.slowness = slowness;
                }
            }
            found.set_base(keys.list.len());
            found.set_warmth();
            found.set_slowness(used);
        }
        found.keys = keys.list;
        Some(found)
    }

    /// Returns the slowness of each recording's host.
    pub(super) fn slowness(&self) -> Vec<f64> {
        self.recordings.iter().map(|recording| recording.slowness).collect()
    }

    /// Returns for each key the sum of the warmth factors of its measurements.
    pub(super) fn weights(&self) -> Vec<f64> {
        let warmth = &self.warmth;
        let sums = ratios(self.keys.len(), &self.recordings, |_, &(key, class, _)| {
            (key as usize, 0.0, warmth.factor(class))
        });
        sums.into_iter().map(|(_, weight)| weight).collect()
    }

    /// Sets the times when warm, given the other factors.
    fn set_base(&mut self, keys: usize) {
        let warmth = &self.warmth;
        let sums = ratios(keys, &self.recordings, |recording, &(key, class, us)| {
            (key as usize, us, warmth.factor(class) * recording.slowness)
        });
        self.base = sums.iter().map(|&(us, weight)| if weight > 0.0 { us / weight } else { 0.0 }).collect();
    }

    /// Sets the factors of warmth, given the others: first by distance, then by occurrence.
    fn set_warmth(&mut self) {
        let (base, warmth) = (&self.base, &mut self.warmth);
        let expected = |recording: &RecordingGaps, key: u32| base[key as usize] * recording.slowness;
        let by_occurrence = warmth.by_occurrence;
        let sums = ratios(warmth.by_distance.len(), &self.recordings, |recording, &(key, class, us)| {
            let factor = by_occurrence[class.occurrence as usize];
            (class.distance as usize, us, expected(recording, key) * factor)
        });
        set(&mut warmth.by_distance, &sums);
        let by_distance = warmth.by_distance;
        let sums = ratios(warmth.by_occurrence.len(), &self.recordings, |recording, &(key, class, us)| {
            let factor = by_distance[class.distance as usize];
            (class.occurrence as usize, us, expected(recording, key) * factor)
        });
        set(&mut warmth.by_occurrence, &sums);
    }

    /// Sets the slowness of each host, given the others, relative to the typical one of the profile's host.
    fn set_slowness(&mut self, used: &[&Training<'_>]) {
        let (base, warmth) = (&self.base, &self.warmth);
        let slowness: Vec<f64> = self
            .recordings
            .iter()
            .map(|recording| {
                let (measured, expected) =
                    recording.gaps.iter().fold((0.0, 0.0), |sum, &(key, class, us)| {
                        (sum.0 + us, sum.1 + base[key as usize] * warmth.factor(class))
                    });
                if expected > 0.0 { measured / expected } else { 1.0 }
            })
            .collect();
        let typical = median_of(&at_home(used, &slowness));
        for (recording, slowness) in self.recordings.iter_mut().zip(&slowness) {
            recording.slowness = slowness / typical;
        }
    }
}

/// Returns the gaps of a recording, with their warmth.
fn observe(recording: &Training<'_>, profiler: &ProfilerCost, keys: &mut Keys) -> RecordingGaps {
    let graph = recording.graph;
    let edges = Edges::from_graph(graph);
    let classes = warmth::classes(graph, &edges);
    let common: Vec<u32> = edges.keys().map(|key| keys.place(key)).collect();
    let gaps = recorded_gaps::gaps(graph, profiler)
        .into_iter_enumerated()
        .filter(|&(mark, _)| !recorded_gaps::is_staged_copy(graph, mark))
        .filter_map(|(mark, gap)| {
            let key = common[edges.of_mark[mark] as usize];
            let gap = recorded_gaps::take_off_pulse(graph, mark, gap?, recording.between);
            Some((key, classes[mark], gap.as_micros().max(0.0)))
        });
    let gaps: Vec<Observation> = gaps.collect();
    let weight = TYPICAL_GAPS / gaps.len().max(1) as f64;
    RecordingGaps { gaps, slowness: 1.0, weight }
}

/// Returns for each slot the sums of measured and of expected time.
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

/// Sets factors to measured over expected; a class without measurements keeps its factor.
fn set(factors: &mut [f64], sums: &[(f64, f64)]) {
    for (factor, &(measured, expected)) in factors.iter_mut().zip(sums) {
        if expected > 0.0 {
            *factor = (measured + PRIOR_US) / (expected + PRIOR_US);
        }
    }
}
