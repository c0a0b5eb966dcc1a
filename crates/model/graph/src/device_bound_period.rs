//! Step times of steps in which the host runs ahead of the device.
//!
//! If the device is slower than the host, each step ends later after its launch than the step before. Then the host's
//! marks show the launch rate, and the ends on the device show the step time.

use steptime_trace::Nanos;
use typed_index_collections::TiVec;

use crate::ids::StepId;
use crate::samples::{Samples, median};

/// Minimum share by which the device takes longer than the host, over all steps, to count as lagging.
const LAGS: f64 = 0.02;
/// The device is the steadier clock if the spread of its periods is less than this share of the spread of the host's.
const STEADIER: f64 = 0.25;
/// Maximum relative spread of host periods that count as steady.
const STEADY: f64 = 0.02;

/// Selects the clock that times the steps, once all samples are known.
pub(crate) fn choose(samples: &mut Samples) {
    if let Some(periods) = by_device(samples) {
        samples.time_by_device(periods);
    }
}

/// The period of each step by the device's clock; `None` where the host's clock is better.
fn by_device(samples: &Samples) -> Option<TiVec<StepId, Option<Nanos>>> {
    let steps = samples.steps();
    // If a step between two others was left out, the device shows no period.
    if !steps.clone().skip(1).all(|step| samples.follows_previous(step)) {
        return None;
    }
    let starts: Vec<Nanos> = steps.clone().map(|step| samples.start(step)).collect();
    let ends: TiVec<StepId, Option<Nanos>> = steps.clone().map(|step| samples.device_end(step)).collect();
    let active: Vec<Nanos> = steps.clone().map(|step| samples.active(step)).collect();
    let period = |step: StepId| Some((*ends.get(step.next())?)? - ends[step]?);
    is_timed_by_device(&starts, &ends.raw, &active).then(|| steps.map(period).collect())
}

/// Whether steps are timed by the device and not by the host. Takes, for each step in order: its start on the host,
/// the end of its work on the device, and the active time of the device.
#[must_use]
pub fn is_timed_by_device(starts: &[Nanos], ends: &[Option<Nanos>], active: &[Nanos]) -> bool {
    let host: Vec<Nanos> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let device: Option<Vec<Nanos>> = ends.windows(2).map(|pair| Some(pair[1]? - pair[0]?)).collect();
    match device.filter(|device| device.iter().all(|period| period.0 > 0)) {
        Some(device) if starts.len() >= 3 => is_better(&host, &device, active).unwrap_or(false),
        _ => false,
    }
}

/// Whether the device's periods are the better clock.
fn is_better(host: &[Nanos], device: &[Nanos], active: &[Nanos]) -> Option<bool> {
    // Only a device that is busy nearly all of the time is a clock.
    let busy = median(&mut active.to_vec())?.0 as f64 / median(&mut device.to_vec())?.0 as f64;
    let (all_host, all_device) = (host.iter().copied().sum::<Nanos>(), device.iter().copied().sum::<Nanos>());
    let lags = all_device.0 as f64 > (1.0 + LAGS) * all_host.0 as f64;
    let (unrest, restless) = (spread(device)?, spread(host)?);
    let steadier = restless > STEADY && unrest < STEADIER * restless;
    Some(busy > 0.8 && (lags || steadier))
}

/// Median distance from the median, relative.
fn spread(periods: &[Nanos]) -> Option<f64> {
    let middle = median(&mut periods.to_vec())?;
    let mut distances: Vec<Nanos> =
        periods.iter().map(|&p| if p > middle { p - middle } else { middle - p }).collect();
    (middle.0 > 0).then_some(median(&mut distances)?.0 as f64 / middle.0 as f64)
}
