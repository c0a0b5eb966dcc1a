//! Comparison of predictions with measurements.

use std::borrow::Cow;
use std::collections::BTreeMap;

use steptime_cost::{HostProfile, PricedGraph};
use steptime_sim::{Replay, Timeline, replay_recorded};
use steptime_trace::Nanos;

use crate::architecture::architectures;
use crate::error::Error;
use crate::fit::fit_host_profile;
use crate::plausibility::check_time;
use crate::predict::{Baseline, baseline, host_costs, predict};
use crate::pricing::{self, FamilyScore, ModelCoverage, OpError};
use crate::score::Score;
use crate::step::Step;
use crate::time_sources::{Host, Kernels};

/// Source of the host's times in a validation.
#[derive(Debug, Clone)]
pub enum HostMode {
    /// Each recording's own.
    Own,
    /// One profile for all.
    Profile(Box<HostProfile>),
    /// One profile, scaled to each recording's host where it has a probe, else for an unknown host.
    Probed(Box<HostProfile>),
    /// For each recording a profile fitted on the recordings of all other architectures, scaled to its host likewise.
    LeaveOneOut,
}

/// One recording, measured and predicted. Times are in milliseconds.
#[derive(Debug, Clone)]
pub struct Row {
    /// The recording's name.
    pub name: String,
    /// The un-profiled step.
    pub measured_ms: f64,
    /// The predicted step.
    pub predicted_ms: f64,
    /// Its 90 % interval.
    pub interval_ms: [f64; 2],
    /// Its architecture, as named by [`crate::architectures`].
    pub architecture: String,
    /// Whether the host profile was fitted on it.
    pub in_sample: bool,
    /// Step by the published method, with the profiler's cost as measured.
    pub paper_ms: f64,
    /// Step by the published method, with the profiler's cost as published.
    pub paper_published_ms: f64,
    /// The sum of kernels.
    pub kernel_sum_ms: f64,
    /// Device active time, measured.
    pub active_measured_ms: f64,
    /// Device active time, predicted.
    pub active_predicted_ms: f64,
    /// Replay of the profiled step with the profiler's cost left in, and the recorded step.
    pub replay: Option<Replay>,
    /// Device active time of the replay at the typical profiled step.
    pub replay_active_ms: f64,
    /// The recording's own host gaps relative to the profile's.
    pub slowness: Option<f64>,
    /// Sources of kernel times, where they come from a device profile.
    pub coverage: Option<ModelCoverage>,
}

impl Row {
    /// Signed relative error of the prediction.
    pub fn error(&self) -> f64 {
        self.predicted_ms / self.measured_ms - 1.0
    }

    /// Whether the interval holds the measured step.
    pub fn inside(&self) -> bool {
        self.interval_ms[0] <= self.measured_ms && self.measured_ms <= self.interval_ms[1]
    }
}

/// All rows, and the scores of each method.
#[derive(Debug, Clone)]
pub struct Validation {
    /// One row per recording.
    pub rows: Vec<Row>,
    /// Score of the simulation.
    pub simulate: Score,
    /// Score of the published method, with the profiler's cost as measured.
    pub paper: Score,
    /// Score of the published method, with the profiler's cost as published.
    pub paper_published: Score,
    /// Score of the sum of kernels.
    pub kernel_sum: Score,
    /// Score of device active time.
    pub active: Score,
    /// Score of the replay of the profiled step, the profiler's cost left in.
    pub replay: Score,
    /// Share of recordings whose interval holds the measured step.
    pub inside: f64,
    /// Predicted and measured times of every op with a launch, where kernel times come from a device profile.
    pub ops: Vec<OpError>,
    /// Scores of `ops` by family.
    pub families: Vec<FamilyScore>,
    /// Warnings about the recordings.
    pub warnings: Vec<String>,
}

/// Input of a validation's predictions.
#[derive(Debug, Clone, Copy)]
pub enum Basis<'s> {
    /// The recordings themselves.
    Recordings,
    /// The execution trace alone of each recording, in the same order.
    ExecutionTraces(&'s [Step]),
}

/// Validates predictions on recordings.
///
/// # Errors
/// Fails where a recording has no measured step time or takes no time, or where leave-one-out has no other architecture to fit on.
pub fn validate(
    recordings: &[Step],
    from: Basis<'_>,
    mode: &HostMode,
    kernels: &Kernels<'_>,
) -> Result<Validation, Error> {
    let mut warnings = Vec::new();
    let architectures = architectures(recordings);
    let fitted = match mode {
        HostMode::LeaveOneOut => leave_one_out(recordings, &architectures, &mut warnings)?,
        _ => BTreeMap::new(),
    };
    let mut ops = Vec::new();
    let mut rows = Vec::with_capacity(recordings.len());
    for (at, (recorded, architecture)) in recordings.iter().zip(&architectures).enumerate() {
        let profile = mode.profile_for(recorded, fitted.get(architecture));
        let host = profile.as_deref().map_or(Host::Own, Host::Profile);
        let predicted = match from {
            Basis::Recordings => recorded,
            Basis::ExecutionTraces(lone) => lone.get(at).unwrap_or(recorded),
        };
        let mut row = row(at, recorded, predicted, &host, kernels, &mut ops)?;
        row.architecture.clone_from(architecture);
        rows.push(row);
    }
    in_sample(&rows, &mut warnings);
    let repaired =
        recordings.iter().filter_map(|recorded| Some((&recorded.name, recorded.repairs.as_ref()?)));
    warnings.extend(repaired.map(|(name, repairs)| format!("{name}: {repairs}")));
    Ok(Validation::new(rows, ops, warnings))
}

impl HostMode {
    /// The profile that a recording is predicted with; `fitted` is the one fitted on all other architectures.
    fn profile_for<'p>(
        &'p self,
        recorded: &Step,
        fitted: Option<&'p HostProfile>,
    ) -> Option<Cow<'p, HostProfile>> {
        let probe = recorded.probe();
        let on = |profile: &HostProfile| probe.map(|probe| Cow::Owned(profile.on(&probe)));
        match self {
            HostMode::Own => None,
            HostMode::Profile(profile) => Some(Cow::Borrowed(profile)),
            HostMode::Probed(profile) => on(profile).or_else(|| Some(Cow::Owned(profile.on_any_host()))),
            HostMode::LeaveOneOut => fitted.map(|profile| on(profile).unwrap_or(Cow::Borrowed(profile))),
        }
    }
}

impl Validation {
    fn new(rows: Vec<Row>, ops: Vec<OpError>, warnings: Vec<String>) -> Validation {
        let against =
            |of: fn(&Row) -> f64| Score::from_errors(rows.iter().map(|r| of(r) / r.measured_ms - 1.0));
        let replayed = rows.iter().filter_map(|r| r.replay);
        Validation {
            simulate: against(|r| r.predicted_ms),
            paper: against(|r| r.paper_ms),
            paper_published: against(|r| r.paper_published_ms),
            kernel_sum: against(|r| r.kernel_sum_ms),
            active: Score::from_errors(
                rows.iter().map(|r| r.active_predicted_ms / r.active_measured_ms - 1.0),
            ),
            replay: Score::from_errors(
                replayed.map(|r| r.simulated.as_millis() / r.measured.as_millis() - 1.0),
            ),
            inside: rows.iter().filter(|r| r.inside()).count() as f64 / rows.len().max(1) as f64,
            families: pricing::families(&ops),
            ops,
            rows,
            warnings,
        }
    }
}

/// Warns where a profile is scored on recordings that it was fitted on.
fn in_sample(rows: &[Row], warnings: &mut Vec<String>) {
    let known = rows.iter().filter(|row| row.in_sample).count();
    if known > 0 {
        warnings.push(format!(
            "in sample: the host profile was fitted on {known} of these {} recordings; `--host leave-one-out` scores a profile fitted \
             without the scored architecture",
            rows.len()
        ));
    }
}

/// Validates one recording. `predicted` is the step to predict from: the recording itself or its execution trace.
fn row(
    at: usize,
    recorded: &Step,
    predicted: &Step,
    host: &Host<'_>,
    kernels: &Kernels<'_>,
    ops: &mut Vec<OpError>,
) -> Result<Row, Error> {
    if recorded.arguments.is_derived() {
        return Err(Error::NothingMeasured { path: recorded.path.clone() });
    }
    let measured_ms = recorded.truth_ms("validated")?;
    let graph = &recorded.graph;
    let prediction = predict(predicted, host, kernels);
    check_time(predicted, prediction.step)?;
    let device = prediction.device.as_ref();
    if !predicted.arguments.is_derived() {
        ops.extend(
            device.into_iter().flat_map(|d| OpError::from_launches(at, graph, &d.launches, &d.prices)),
        );
    }
    let baseline = |way| baseline(recorded, kernels, way).as_millis();
    let profiled = PricedGraph::measured(graph, host_costs(recorded, &Host::Profiled));
    Ok(Row {
        name: recorded.name.clone(),
        measured_ms,
        predicted_ms: prediction.step.as_millis(),
        interval_ms: prediction.interval.map(Nanos::as_millis),
        architecture: String::new(),
        in_sample: matches!(host, Host::Profile(profile) if was_fitted_on(profile, recorded)),
        paper_ms: baseline(Baseline::Paper),
        paper_published_ms: baseline(Baseline::PaperPublished),
        kernel_sum_ms: baseline(Baseline::KernelSum),
        active_measured_ms: graph.samples.median_active().unwrap_or_default().as_millis(),
        active_predicted_ms: prediction.active.as_millis(),
        replay: replay_recorded(graph, &profiled),
        replay_active_ms: Timeline::simulate(&profiled).active().as_millis(),
        slowness: prediction.slowness,
        coverage: device.map(|d| d.prices.coverage),
    })
}

/// Whether a profile was fitted on a recording: by its fingerprint, or by its name where the profile has no
/// fingerprint.
fn was_fitted_on(profile: &HostProfile, recorded: &Step) -> bool {
    let print = recorded.fingerprint.map(|print| print.to_string());
    profile.recordings.iter().filter(|row| !row.excluded).any(|row| {
        if row.fingerprint.is_empty() {
            row.name == recorded.name
        } else {
            Some(&row.fingerprint) == print.as_ref()
        }
    })
}

/// For each architecture, a profile fitted on the recordings of all others.
fn leave_one_out(
    recordings: &[Step],
    families: &[String],
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, HostProfile>, Error> {
    let mut profiles = BTreeMap::new();
    for family in families {
        if profiles.contains_key(family) {
            continue;
        }
        let others: Vec<&Step> =
            recordings.iter().zip(families).filter(|(_, f)| *f != family).map(|(s, _)| s).collect();
        if others.is_empty() {
            return Err(Error::OneModel { family: family.clone() });
        }
        let fitted = fit_host_profile(&others, &[])?;
        for warning in fitted.warnings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        profiles.insert(family.clone(), fitted.profile);
    }
    Ok(profiles)
}
