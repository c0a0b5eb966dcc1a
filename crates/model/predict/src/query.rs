//! Queries of step times: builder and execution.

mod host;
mod kernels_by_name;
mod roofline;
mod settings;
mod what_if;

pub use host::read_host;
pub use kernels_by_name::{NamedKernel, NamedKernels};
pub use roofline::{KernelRoof, Roofline};
pub use what_if::WhatIfs;

use std::path::Path;
use std::sync::Arc;

use steptime_aten::Settings;
use steptime_cost::device::{DeviceProfile, Indices, ModelChoice};
use steptime_cost::{Demands, HostCosts, Process};
use steptime_graph::{ActivityId, TiVec};
use steptime_step::Peak;
use steptime_trace::{Nanos, Origin};

use self::host::{ChosenHost, Times};
use crate::doubt::{self, Doubt};
use crate::error::Error;
use crate::memory;
use crate::plausibility::{check_sizes, check_time};
use crate::predict::{Baseline, Prediction, baseline_in, device_times, host_side, predict_in};
use crate::pricing::beside_collectives;
use crate::query_echo::{DeviceEcho, QueryEcho};
use crate::step::{Choice, Step};
use crate::time_sources::{Host, Kernels};

/// Opens an input: a recording, a Kineto trace, an execution trace, a folder with one of these for each rank, or an
/// archive of traces. Of several ranks it selects the lowest; [`Step::open`] selects another.
///
/// # Errors
/// Fails where the input cannot be read, has no step, or has several recordings that are not the ranks of one job.
pub fn open(path: impl AsRef<Path>) -> Result<Step, Error> {
    Step::open(path.as_ref(), &Choice::default())
}

/// A query about a step, made by [`Step::predict`]. The defaults come from the recording: its kernel times, and its
/// host times without the profiler's cost.
///
/// ```
/// # fn main() -> Result<(), steptime_predict::Error> {
/// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
/// let step = steptime_predict::open(format!("{examples}/dlrm_default_2048"))?;
/// let p = step.predict().on("h200")?.run()?;
/// println!("{} in {:?}; idle {}", p.step, p.interval, p.idle);
/// # assert!(p.interval[0] < p.step && p.step < p.interval[1] && p.active + p.idle == p.step);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a query does nothing until `run`"]
pub struct Query<'s> {
    step: &'s Step,
    device: Option<Device>,
    models: ModelChoice,
    indices: Indices,
    settings: Settings,
    host: Times<'s>,
    slower: Option<f64>,
    process: Process,
    way: Option<Baseline>,
}

/// Constructor of the query (GPU and host) for each step of a job.
pub trait QueryFor: Sync {
    /// Error of a query.
    type Error: From<Error> + Send;

    /// Makes the query of a step.
    ///
    /// # Errors
    /// Fails where the query cannot be made.
    fn query<'s>(&self, step: &'s Step) -> Result<Query<'s>, Self::Error>;
}

/// The GPU of a query: its name as given, and its profile.
#[derive(Debug, Clone)]
struct Device {
    name: String,
    profile: Arc<DeviceProfile>,
}

/// Device side and host side of a step, priced.
pub(crate) struct Sides {
    /// The time of each device activity.
    pub durations: TiVec<ActivityId, Nanos>,
    /// Relative half-width of the 90 % interval of the total device time.
    pub spread: f64,
    /// Multiprocessor demand of kernels, to slow them beside collectives; `None` without collectives, or where kernel times are measured
    /// and so include that effect.
    pub demands: Option<Demands>,
    /// The host's times.
    pub host: HostCosts,
    /// Ratio of the recording's host gaps to those of this prediction.
    pub slowness: Option<f64>,
    /// Doubt about kernels without a price.
    pub unpriced: Option<Doubt>,
    /// Peak device memory of the step's tensors; `None` where unknown.
    pub peak: Option<Peak>,
    /// Doubt where the GPU has less memory than the peak.
    pub too_large: Option<Doubt>,
    /// Settings of the query.
    pub asked: QueryEcho,
}

impl Step {
    /// Starts a query of the step's time.
    pub fn predict(&self) -> Query<'_> {
        Query {
            step: self,
            device: None,
            models: ModelChoice::default(),
            indices: Indices::default(),
            settings: Settings::default(),
            // The host cost of profilers other than Kineto is unknown, so it is not subtracted.
            host: match self.origin {
                Origin::Kineto | Origin::Train => Times::Best,
                Origin::Xla | Origin::Nsight => Times::Profiled,
            },
            slower: None,
            process: self.process,
            way: None,
        }
    }
}

impl<'s> Query<'s> {
    /// Simulates the step.
    ///
    /// # Errors
    /// Fails if the input has no device activity or no duration. Without a GPU given: if the input has no kernel times.
    /// With a GPU given: if neither the arguments of the input's ops nor the recorded GPU is known. Also fails if the
    /// input's own host times are needed and missing. Also fails if a step is implausibly long or a tensor too large for any GPU.
    pub fn run(&self) -> Result<Prediction, Error> {
        let prediction = self.simulate()?;
        // If the recorded GPU is known, its measured kernel times are transferred: then there is an estimate.
        let unknown = prediction.doubts.iter().any(|doubt| doubt.no_estimate);
        if unknown && self.lacks_arguments(self.step) {
            return Err(Error::NoArguments { path: self.step.path.clone() });
        }
        Ok(prediction)
    }

    /// Like [`Query::run`], but does not fail if too little is known to estimate a time: a doubt then says so
    /// ([`no_estimate`](crate::Doubt::no_estimate)).
    ///
    /// # Errors
    /// As [`Query::run`], except for missing arguments.
    pub fn simulate(&self) -> Result<Prediction, Error> {
        let step = self.predictable()?;
        let chosen = self.chosen(step)?;
        let kernels = self.kernels();
        // Computed before the simulation, to limit memory: it builds an editable step, as large as everything that a prediction
        // keeps, and the two should not be held at once.
        let peak = memory::peak_of_recorded(step, &kernels);
        let prediction = predict_in(step, &self.host_of(&chosen), &kernels, self.asked(&chosen), peak);
        if let Some(device) = &prediction.device {
            check_sizes(&step.path, &step.graph, &device.launches)?;
        }
        check_time(step, prediction.step)?;
        Ok(prediction)
    }

    /// Computes the step time by a baseline method, for comparison.
    ///
    /// # Errors
    /// As [`Query::simulate`].
    pub fn baseline(&self, way: Baseline) -> Result<Nanos, Error> {
        let step = self.predictable()?;
        self.chosen(step)?;
        let time = baseline_in(step, self.process, &self.kernels(), way);
        check_time(step, time)?;
        Ok(time)
    }

    /// The step, as given.
    pub fn step(&self) -> &'s Step {
        self.step
    }

    /// The method given with [`Query::by`].
    pub fn way(&self) -> Option<Baseline> {
        self.way
    }

    /// The settings of the query as they take effect on its step.
    ///
    /// # Errors
    /// Fails where the step lacks host times that the query needs.
    pub fn settings_in_effect(&self) -> Result<QueryEcho, Error> {
        Ok(self.asked(&self.chosen(self.step)?))
    }

    /// Prices both sides of the step without simulating it.
    pub(crate) fn sides(&self) -> Result<Sides, Error> {
        let step = self.predictable()?;
        if self.lacks_arguments(step) {
            return Err(Error::NoArguments { path: self.step.path.clone() });
        }
        let chosen = self.chosen(step)?;
        let kernels = self.kernels();
        let (durations, spread, device) = device_times(step, &kernels);
        if let Some(device) = &device {
            check_sizes(&step.path, &step.graph, &device.launches)?;
        }
        let (host, slowness) = host_side(step, self.process, &self.host_of(&chosen));
        let unpriced = doubt::price_doubt(step, &kernels, device.as_ref());
        let demands = match (&kernels, &device) {
            (Kernels::Device { profile, .. }, Some(device)) => {
                beside_collectives(&step.graph, &device.launches, &profile.spec)
            }
            _ => None,
        };
        let peak = memory::peak_of_recorded(step, &kernels);
        let spec = memory::spec(step, &kernels);
        let too_large =
            peak.as_ref().zip(spec.as_ref()).and_then(|(peak, spec)| doubt::memory::doubt(peak, spec));
        let asked = self.asked(&chosen);
        Ok(Sides { durations, spread, demands, host, slowness, unpriced, peak, too_large, asked })
    }

    /// The step, where the input has what the query needs: device activity, and without a GPU given also times.
    fn predictable(&self) -> Result<&'s Step, Error> {
        if self.step.ran_on_cpu() {
            let unknown = match (&self.device, self.host.is_of_recording()) {
                (Some(device), _) => format!("its time on {}", device.name),
                (None, false) => "its time on another host".to_owned(),
                (None, true) => return Ok(self.step),
            };
            return Err(Error::MeasuredAlone { path: self.step.path.clone(), unknown });
        }
        // A step without an accelerator can be replayed as profiled, but not predicted.
        if !self.host.is_profiled() || !self.step.accelerators.is_empty() {
            self.step.on_a_device()?;
        }
        if self.step.arguments.is_derived() && self.device.is_none() {
            return Err(Error::NoTiming { path: self.step.path.clone() });
        }
        Ok(self.step)
    }

    /// Whether a GPU is given, but no arguments of ops were recorded to price it with.
    fn lacks_arguments(&self, step: &Step) -> bool {
        self.device.is_some() && !step.arguments.is_derived() && step.arguments.known() == 0
    }

    fn chosen(&self, step: &Step) -> Result<ChosenHost<'_>, Error> {
        self.host.chosen(self.slower, step)
    }

    fn host_of<'c>(&self, chosen: &'c ChosenHost<'_>) -> Host<'c> {
        match &chosen.profile {
            Some(profile) => Host::Profile(profile),
            None if self.host.is_profiled() => Host::Profiled,
            None => Host::Own,
        }
    }

    fn asked(&self, chosen: &ChosenHost<'_>) -> QueryEcho {
        let device = self.device.as_ref();
        QueryEcho {
            host: chosen.name.clone(),
            host_slower_than: chosen.slower_than.clone(),
            host_assumed: chosen.assumed,
            host_half_width: chosen.profile.as_ref().map(|profile| profile.spread),
            kernels: device.map_or_else(|| "measured".to_owned(), |device| device.name.clone()),
            device: device.map(|device| DeviceEcho::from_profile(&device.profile)),
            process: self.process,
        }
    }

    fn kernels(&self) -> Kernels<'_> {
        match &self.device {
            None => Kernels::Measured,
            Some(device) => Kernels::Device {
                profile: &device.profile,
                models: self.models,
                indices: self.indices.clone(),
                settings: self.settings,
            },
        }
    }
}
