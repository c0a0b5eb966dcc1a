//! Fits a host profile on the recordings of several models.

mod delays;
mod factors;

use std::sync::Arc;

use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::captured::Captured;
use super::gaps::{Gap, Gaps};
use super::probe::{HostPace, Probe};
use super::profile::{HostProfile, RecordingSpeed};
use super::profiler::ProfilerCost;
use super::speed::Elasticity;
use super::warmth::Warmth;
use crate::error::Error;
use delays::{copies, coupling};
use factors::Factors;

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

/// Of more gaps than these ...
const MANY: usize = 3000;
/// ... those with less weight are left out: a wider key knows as much, and a profile is read at every start.
const RARE: f64 = 2.0;
/// A host's speed is never taken to be known better than this (relative, half-width of 90 %).
const LEAST_SPREAD: f64 = 0.06;

/// Fits a profile: `gap = slowness of the recording x time when warm x factor of warmth`.
///
/// A recording made while its host was slow gets a high slowness and does not bend the times. `profiler` is taken off
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
    let factors = Factors::fit(&used, profiler).ok_or(Error::NothingToFit)?;
    let slowness = factors.slowness();
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
        warmth: rounded(factors.warmth),
        gaps: Arc::new(Gaps::new(worth_keeping(factors))),
        spread: known,
        machine: String::new(),
        reference: reference(&used, &slowness),
        pace: HostPace::default(),
    })
}

/// The gaps of a profile, sorted by key.
fn worth_keeping(factors: Factors) -> Vec<Gap> {
    let weights = factors.weights();
    let Factors { keys, base, .. } = factors;
    let least = if keys.len() > MANY { RARE } else { 0.0 };
    let mut gaps: Vec<Gap> = keys
        .into_iter()
        .enumerate()
        .filter(|&(key, _)| weights[key] > least)
        .map(|(key, name)| Gap { key: name, us: base[key], weight: weights[key] })
        .collect();
    gaps.sort_by(|a, b| a.key.cmp(&b.key));
    gaps
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
