//! Fitting of a host profile, with warnings about outliers among the recordings.

use steptime_cost::host::speed::between_steps;
use steptime_cost::{HostProfile, ProfilerCost, Training, fit_host};
use steptime_trace::Nanos;

use crate::error::Error;
use crate::predict::predict;
use crate::step::Step;
use crate::time_sources::{Host, Kernels};
use crate::uncertainty::uncertainty;

/// A fitted profile, with warnings for the user.
#[derive(Debug, Clone)]
pub struct HostFit {
    /// The profile.
    pub profile: HostProfile,
    /// Recordings that disagree, and by how much.
    pub warnings: Vec<String>,
}

/// Fits a host profile on recordings.
///
/// A recording whose profiled steps, the profiler's cost taken off, disagree with its un-profiled ones
/// was made while the host was slow or fast: it is reported and left out of the fit.
///
/// `recordings` are from the host of the profile; `others`, from other hosts, add gaps that the profile would lack.
///
/// # Errors
/// Fails where one of them has no times of a GPU's step, or where no recording is left to fit on.
pub fn fit_host_profile(recordings: &[&Step], others: &[&Step]) -> Result<HostFit, Error> {
    let home = recordings.len();
    let recordings = &[recordings, others].concat();
    let untimed = |recorded: &&&Step| recorded.arguments.is_derived() || recorded.ran_on_cpu();
    if let Some(untimed) = recordings.iter().find(untimed) {
        return Err(Error::NothingMeasured { path: untimed.path.clone() });
    }
    let ratios: Vec<Option<f64>> = recordings.iter().map(|s| profiled_ratio(s)).collect();
    let mut known: Vec<f64> = ratios.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    let typical = known.get(known.len() / 2).copied();
    let mut warnings = Vec::new();
    let training: Vec<Training<'_>> = recordings
        .iter()
        .zip(&ratios)
        .enumerate()
        .map(|(at, (recorded, ratio))| {
            let away = ratio.zip(typical).map_or(0.0, |(r, t)| r / t - 1.0);
            let excluded = away.abs() > uncertainty().host.out_of_line && known.len() >= 3;
            if excluded {
                let pace = if away > 0.0 { "slow" } else { "fast" };
                warnings.push(format!(
                    "{}: its profiled steps are {:+.0} % out of line with its un-profiled ones: the host was {pace} during the recording; \
                     the profile lists the recording but is not fitted on it",
                    recorded.name,
                    100.0 * away
                ));
            }
            let probe = recorded.probe();
            let between = recorded.meta.as_ref().map_or(Nanos::ZERO, |meta| between_steps(&meta.pulses));
            Training { name: recorded.name.clone(), graph: &recorded.graph, excluded, home: at < home, probe, between }
        })
        .collect();
    let mut profile = fit_host(&training, &ProfilerCost::PROFILED, &ProfilerCost::FRESH)?;
    for (row, recorded) in profile.recordings.iter_mut().zip(recordings) {
        row.fingerprint = recorded.fingerprint.map(|print| print.to_string()).unwrap_or_default();
    }
    Ok(HostFit { profile, warnings })
}

/// Ratio of the replayed step, the profiler's cost taken off, to the measured un-profiled one.
fn profiled_ratio(recorded: &Step) -> Option<f64> {
    let truth = recorded.truth_ms("fitted on").ok()?;
    let own = predict(recorded, &Host::Own, &Kernels::Measured);
    Some(own.step.as_millis() / truth)
}
