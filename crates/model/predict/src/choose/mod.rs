//! Comparison of GPUs and batches: on each GPU the step at the recorded batch and at the largest that fits, its bottleneck, and how
//! sure the order of two GPUs is.

mod batch;
mod bound;
mod operating_point;
mod prices;
mod ratio;
pub(crate) mod remedy;

use rayon::prelude::*;
use steptime_cost::device::DeviceSpec;

pub use self::batch::LargestBatch;
pub use self::bound::Limit;
pub use self::operating_point::OperatingPoint;
pub use self::prices::Prices;
pub use self::ratio::Ratio;
pub use self::remedy::{Fit, Remedy};
use crate::error::Error;
use crate::predict::Prediction;
use crate::query::{Query, WhatIfs};

/// A step on several GPUs, each at two batches.
#[derive(Debug)]
pub struct GpuChoice {
    /// Samples of the recorded step, where known.
    pub batch: Option<u64>,
    /// The GPUs, in the order in which they were given.
    pub gpus: Vec<GpuPoints>,
}

/// A step on one GPU.
#[derive(Debug)]
pub struct GpuPoints {
    /// The GPU, as given.
    pub name: String,
    /// Its specification.
    pub spec: DeviceSpec,
    /// Prediction of the step as recorded, for this GPU.
    pub prediction: Prediction,
    /// Summary of that prediction: its bottleneck, and the uncertainty of its time.
    pub recorded: OperatingPoint,
    /// The largest batch that fits, or the reason why it is unknown.
    pub largest: Result<LargestBatch, String>,
    /// Changes that were tried to make the recorded batch fit; empty where it fits, or where that is unknown.
    pub remedies: Vec<Remedy>,
}

impl GpuPoints {
    /// The step at the largest batch that fits; the recorded one where no other batch is known, and `None` where nothing fits.
    #[must_use]
    pub fn best(&self) -> Option<&OperatingPoint> {
        match &self.largest {
            Ok(LargestBatch::At(point)) => Some(point),
            Ok(LargestBatch::Nothing { .. }) => None,
            Err(_) => Some(&self.recorded).filter(|point| point.fits != Some(false)),
        }
    }
}

impl Query<'_> {
    /// Predicts the step on each of these GPUs, given as names of shipped profiles or as folders: at the recorded batch, and at the
    /// largest that fits. `recorded` is the number of recorded samples, where the input does not give it.
    ///
    /// ```
    /// # fn main() -> Result<(), steptime_predict::Error> {
    /// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    /// let step = steptime_predict::open(format!("{examples}/resnet50_32"))?;
    /// let found = step.predict().choose(&["h100", "t4"], None)?;
    /// let [h100, t4] = &found.gpus[..] else { panic!() };
    /// assert!(h100.recorded.step < t4.recorded.step);
    /// let ratio = h100.recorded.ratio_to(&t4.recorded).expect("both are known");
    /// assert!(ratio.interval[0] > 1.0, "an H100 is surely faster: {ratio:?}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Query::what_ifs`]; also where one of the GPUs has no profile.
    pub fn choose(&self, devices: &[&str], recorded: Option<u64>) -> Result<GpuChoice, Error> {
        let questions: Vec<Query<'_>> =
            devices.par_iter().map(|name| self.clone().on(name)).collect::<Result<_, Error>>()?;
        let asked: Vec<WhatIfs<'_>> =
            questions.par_iter().map(Query::what_ifs).collect::<Result<_, Error>>()?;
        let Some(first) = asked.first() else { return Ok(GpuChoice { batch: recorded, gpus: Vec::new() }) };
        let samples = recorded.or_else(|| first.recorded().batch());
        let unchanged = first.edited(&[])?;
        let search = batch::Search::new(&asked, samples);
        let gpus = devices.par_iter().zip(&asked).map(|(name, asked)| {
            let spec = asked.spec().cloned().ok_or_else(|| Error::NoOwnProfile {
                path: asked.recorded().path.clone(),
                device: Some((*name).to_owned()),
            })?;
            let point = OperatingPoint::price(asked, &unchanged, samples)?;
            let largest = search.largest(asked, &spec);
            let remedies = match point.fits {
                Some(false) => remedy::all(asked, &spec, samples),
                _ => Vec::new(),
            };
            let prediction = asked.before().clone();
            Ok(GpuPoints { name: (*name).to_owned(), spec, prediction, recorded: point, largest, remedies })
        });
        Ok(GpuChoice { batch: samples, gpus: gpus.collect::<Result<_, Error>>()? })
    }
}
