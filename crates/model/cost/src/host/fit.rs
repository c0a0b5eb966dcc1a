//! Fits a host profile on the recordings of several models.

mod delays;
mod factors;

use std::sync::Arc;

use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::captured::Captured;
use super::error::Error;
use super::gaps::{Gap, Gaps};
use super::probe::{HostPace, Probe};
use super::profile::{HostProfile, RecordingSpeed};
use super::profiler::ProfilerCost;
use super::speed::Elasticity;
use super::warmth::Warmth;
use delays::{copies, coupling};
use factors::Factors;

/// A recording for a fit.
#[derive(Debug, Clone)]
pub struct Training<'g> {
    pub name: String,
    pub graph: &'g StepGraph,
    /// Whether it is known to be out of line: it is listed, but not in the fit.
    pub excluded: bool,
    /// Whether it was made on the host of the profile. Other recordings add gaps, scaled to that host's speed.
    pub home: bool,
    /// Values of its host's probe.
    pub probe: Option<Probe>,
    /// Duration of a pulse between two of its profiled steps: it is in the trace, and in no step.
    pub between: Nanos,
}

/// Number of gaps above which ...
const MANY: usize = 3000;
/// ... those below this weight are left out: a wider key is as accurate, and a profile is read at every start.
const RARE: f64 = 2.0;
/// Least uncertainty of a host's speed (relative, half-width of 90 %).
const LEAST_SPREAD: f64 = 0.06;

/// Fits a profile: `gap = slowness of the recording x time when warm x factor of warmth`.
///
/// A recording made while its host was slow gets a high slowness and does not bend the times. `profiler` is subtracted from
/// the gaps; `profiler_fresh` is kept for predictions of processes that were never profiled.
///
/// # Errors
/// If no recording has a measured step.
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

/// Returns the gaps of a profile, sorted by key.
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

/// Returns the slowness of the recordings from the profile's host; of all, if none of these is left.
fn at_home(used: &[&Training<'_>], slowness: &[f64]) -> Vec<f64> {
    let anywhere = !used.iter().any(|r| r.home);
    used.iter().zip(slowness).filter(|(r, _)| r.home || anywhere).map(|(_, &s)| s).collect()
}

/// Returns the probe of the profile's host: each piece from the recordings' probes, divided by the slowness of their hosts.
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
    Probe::from_array(std::array::from_fn(typical))
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

/// Returns the distance from the typical host that covers nine of ten hosts.
fn spread(slowness: &[f64]) -> f64 {
    let mut away: Vec<f64> = slowness.iter().map(|s| s.ln().abs()).collect();
    away.sort_by(f64::total_cmp);
    let at = ((away.len() as f64 * 0.9).ceil() as usize).clamp(1, away.len()) - 1;
    let widest = away[at].max(LEAST_SPREAD);
    (widest * 1000.0).round() / 1000.0
}
