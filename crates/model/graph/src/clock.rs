//! How long steps take where the host runs ahead of the device.
//!
//! If the device is slower than the host, each step ends later after its launch than the step before. Then the host's
//! marks show how fast it launches, and the ends on the device show how long a step takes.

use steptime_trace::Nanos;
use typed_index_collections::TiVec;

use crate::ids::StepId;
use crate::samples::{Samples, median};

/// The device lags if it takes longer than the host, over all steps, by this share.
const LAGS: f64 = 0.02;
/// The device is the steadier clock if its periods differ by less than this share of what the host's do.
const STEADIER: f64 = 0.25;
/// Host periods that differ by less than this, relative, are steady enough.
const STEADY: f64 = 0.02;

/// Decides by which clock steps are timed, once all is known.
pub(crate) fn choose(samples: &mut Samples) {
    if let Some(periods) = by_device(samples) {
        samples.time_by_device(periods);
    }
}

/// The period of each step by the device's clock; `None` where the host's clock is better.
fn by_device(samples: &Samples) -> Option<TiVec<StepId, Option<Nanos>>> {
    let steps = samples.steps();
    // Where a step between two others was left out, the device shows no period.
    if !steps.clone().skip(1).all(|step| samples.follows_previous(step)) {
        return None;
    }
    let starts: Vec<Nanos> = steps.clone().map(|step| samples.start(step)).collect();
    let ends: TiVec<StepId, Option<Nanos>> = steps.clone().map(|step| samples.device_end(step)).collect();
    let active: Vec<Nanos> = steps.clone().map(|step| samples.active(step)).collect();
    let period = |step: StepId| Some((*ends.get(step.next())?)? - ends[step]?);
    is_timed_by_device(&starts, &ends.raw, &active).then(|| steps.map(period).collect())
}

/// Whether the device tells how long steps take, and the host does not. Of each step, in order: when it begins on the host,
/// when the device was done with what it launched, and how long the device ran that.
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
