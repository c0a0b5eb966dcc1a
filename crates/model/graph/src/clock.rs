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
    if steps.len() < 3 {
        return None;
    }
    // The device shows a period only where the next step was recorded.
    let next = |step: StepId| (step.index() + 1 < steps.len()).then(|| step.next());
    let followed = |step: &StepId| next(*step).is_some_and(|next| samples.follows_previous(next));
    let host: Vec<Nanos> =
        steps.clone().filter(followed).filter_map(|step| samples.host_period(step)).collect();
    let ends: TiVec<StepId, Option<Nanos>> = steps.clone().map(|step| samples.device_end(step)).collect();
    let periods: TiVec<StepId, Option<Nanos>> = steps
        .clone()
        .map(|step| Some(ends[next(step).filter(|_| followed(&step))?]? - ends[step]?))
        .collect();
    let device: Vec<Nanos> = periods.iter().copied().flatten().collect();
    if device.len() != host.len() || device.iter().any(|period| period.0 <= 0) {
        return None;
    }
    // Only a device that is busy nearly all of the time is a clock.
    let mut active: Vec<Nanos> = steps.map(|step| samples.active(step)).collect();
    let busy = median(&mut active)?.0 as f64 / median(&mut device.clone())?.0 as f64;
    let (all_host, all_device) = (host.iter().copied().sum::<Nanos>(), device.iter().copied().sum::<Nanos>());
    let lags = all_device.0 as f64 > (1.0 + LAGS) * all_host.0 as f64;
    let (unrest, restless) = (spread(&device)?, spread(&host)?);
    let steadier = restless > STEADY && unrest < STEADIER * restless;
    (busy > 0.8 && (lags || steadier)).then_some(periods)
}

/// Median distance from the median, relative.
fn spread(periods: &[Nanos]) -> Option<f64> {
    let middle = median(&mut periods.to_vec())?;
    let mut distances: Vec<Nanos> =
        periods.iter().map(|&p| if p > middle { p - middle } else { middle - p }).collect();
    (middle.0 > 0).then_some(median(&mut distances)?.0 as f64 / middle.0 as f64)
}
