//! Asking how long a step takes: on which GPU, by whose host.

mod roofline;

pub use roofline::{KernelRoof, Roofline};

use std::borrow::Cow;
use std::ops::Deref;
use std::path::Path;

use steptime_aten::Settings;
use steptime_cost::device::{DeviceProfile, Indices, ModelChoice};
use steptime_cost::{HostProfile, Probe};
use steptime_trace::Nanos;

use crate::device;
use crate::error::Error;
use crate::predict::{Baseline, Host, Kernels, Prediction, baseline, default_host, predict};
use crate::step::{Choice, Step};

/// Opens an input: a recording, a Kineto trace, an execution trace, a folder with one of these for each rank, or an
/// archive of traces. Of several ranks it takes the lowest; [`Step::open`] takes another.
///
/// # Errors
/// Where it cannot be read, holds no step, or several recordings that are not the ranks of one job.
pub fn open(path: impl AsRef<Path>) -> Result<Step, Error> {
    Step::open(path.as_ref(), &Choice::default())
}

/// A question about a step, made by [`Step::predict`]. What is not said is taken from the recording: its own kernel
/// times, and its own host, the profiler's cost taken off.
///
/// ```
/// # fn main() -> Result<(), steptime::Error> {
/// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
/// let step = steptime::open(format!("{examples}/dlrm_default_2048"))?;
/// let p = step.predict().on("h200")?.run()?;
/// println!("{} in {:?}; idle {}", p.step, p.interval, p.idle);
/// # assert!(p.interval[0] < p.step && p.step < p.interval[1] && p.active + p.idle == p.step);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a question is answered by `run`"]
pub struct Question<'s> {
    step: &'s Step,
    device: Option<Device>,
    models: ModelChoice,
    indices: Indices,
    settings: Settings,
    host: Times<'s>,
    slower: Option<f64>,
}

/// A GPU, as it was named.
#[derive(Debug, Clone)]
struct Device {
    name: String,
    profile: DeviceProfile,
}

/// The step that was asked about, or the same read once more with what was missing.
enum Held<'s> {
    Given(&'s Step),
    Whole(Box<Step>),
}

impl Deref for Held<'_> {
    type Target = Step;

    fn deref(&self) -> &Step {
        match self {
            Held::Given(step) => step,
            Held::Whole(step) => step,
        }
    }
}

/// Where the host's times come from.
#[derive(Debug, Clone, Copy)]
enum Times<'s> {
    /// The recording where it has any, else a typical host.
    Best,
    /// The recording, the profiler's cost left in.
    Profiled,
    /// A profile.
    Profile(&'s HostProfile),
    /// The shipped profile, brought to the host of a probe.
    Probed(Probe),
    /// A host of typical speed.
    Typical,
}

impl Step {
    /// How long does the step take?
    pub fn predict(&self) -> Question<'_> {
        Question {
            step: self,
            device: None,
            models: ModelChoice::default(),
            indices: Indices::default(),
            settings: Settings::default(),
            host: Times::Best,
            slower: None,
        }
    }
}

impl<'s> Question<'s> {
    /// On this GPU: the name of a profile that ships (`h200`, see [`crate::devices`]), or a profile's folder. Every kernel
    /// is priced by the profile, from the arguments of the ops; none of the recording's times is used for it.
    ///
    /// # Errors
    /// Where there is no such profile.
    pub fn on(mut self, name: &str) -> Result<Self, Error> {
        self.device = Some(Device { name: name.to_owned(), profile: device::device(name)? });
        Ok(self)
    }

    /// On the GPU of this profile.
    pub fn with(mut self, profile: DeviceProfile) -> Self {
        self.device = Some(Device { name: profile.spec.name.clone(), profile });
        self
    }

    /// By these models of the profile.
    pub fn models(mut self, models: ModelChoice) -> Self {
        self.models = models;
        self
    }

    /// With indices of lookups that are distributed so.
    pub fn indices(mut self, indices: Indices) -> Self {
        self.indices = indices;
        self
    }

    /// With these settings of PyTorch, which execution traces do not record.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// On the host of this profile.
    pub fn host(mut self, profile: &'s HostProfile) -> Self {
        self.host = Times::Profile(profile);
        self
    }

    /// On the host that a probe was measured on: another recording's ([`Step::probe`]), or one read from a file.
    pub fn on_host_of(mut self, probe: Probe) -> Self {
        self.host = Times::Probed(probe);
        self
    }

    /// On a host of typical speed, whatever the recording's was.
    pub fn on_a_typical_host(mut self) -> Self {
        self.host = Times::Typical;
        self
    }

    /// As it was profiled: the profiler's cost stays in.
    pub fn as_profiled(mut self) -> Self {
        self.host = Times::Profiled;
        self
    }

    /// On a host that takes `times` as long for everything as that of the profile: 1.7 is 1.7 times as slow, and 0.05 to 50
    /// are taken. Where no profile was named that is the shipped one.
    pub fn slower(mut self, times: f64) -> Self {
        self.slower = Some(times);
        self
    }

    /// Answers.
    ///
    /// # Errors
    /// Where the input holds too little for what was asked: no times of a GPU and no GPU named; nothing that ran on a
    /// GPU; no arguments of its ops, where a GPU is named and that recorded on is not known either; no times of a host that are its own.
    pub fn run(&self) -> Result<Prediction, Error> {
        let step = self.shaped(self.device.is_some())?;
        let profile = self.profile(&step)?;
        let prediction = predict(&step, &self.host_of(profile.as_deref()), &self.kernels());
        // From a GPU that is known, measured times of kernels carry over: then there is an answer.
        let unknown = prediction.doubts.iter().any(|doubt| doubt.no_estimate);
        if unknown && self.lacks_arguments(&step) {
            return Err(Error::NoArguments { path: step.path.clone() });
        }
        Ok(prediction)
    }

    /// Answers by a simpler way, to compare with.
    ///
    /// # Errors
    /// As [`Question::run`].
    pub fn baseline(&self, way: Baseline) -> Result<Nanos, Error> {
        let step = self.shaped(self.device.is_some())?;
        Ok(baseline(&step, &self.kernels(), way))
    }

    /// The step, read once more with the arguments of its ops where these are needed and were not read.
    fn shaped(&self, needed: bool) -> Result<Held<'s>, Error> {
        self.step.on_a_device()?;
        if self.step.arguments.is_derived() {
            return match (&self.device, &self.host) {
                (None, _) => Err(Error::NoTiming { path: self.step.path.clone() }),
                (_, Times::Profiled) => Err(Error::NoHostTimes { path: self.step.path.clone() }),
                _ => Ok(Held::Given(self.step)),
            };
        }
        if !needed || self.step.arguments.known() > 0 {
            return Ok(Held::Given(self.step));
        }
        let whole = self.step.with_arguments()?;
        Ok(if whole.arguments.known() > 0 { Held::Whole(Box::new(whole)) } else { Held::Given(self.step) })
    }

    /// Whether a GPU is named to price a step for of whose ops no arguments were recorded.
    fn lacks_arguments(&self, step: &Step) -> bool {
        self.device.is_some() && !step.arguments.is_derived() && step.arguments.known() == 0
    }

    fn profile(&self, step: &Step) -> Result<Option<Cow<'s, HostProfile>>, Error> {
        if let Some(times) = self.slower.filter(|times| !(0.05..=50.0).contains(times)) {
            return Err(Error::HostFactor { times });
        }
        let chosen = match self.host {
            Times::Profiled => None,
            Times::Profile(profile) => Some(Cow::Borrowed(profile)),
            Times::Probed(probe) => Some(Cow::Owned(default_host()?.on(&probe))),
            Times::Typical | Times::Best if self.slower.is_some() => Some(Cow::Borrowed(default_host()?)),
            Times::Typical => Some(Cow::Owned(default_host()?.on_any_host())),
            Times::Best if step.arguments.is_derived() => Some(Cow::Owned(default_host()?.on_any_host())),
            Times::Best => None,
        };
        Ok(match (chosen, self.slower) {
            (Some(profile), Some(times)) => Some(Cow::Owned(profile.slowed(times))),
            (chosen, _) => chosen,
        })
    }

    fn host_of<'p>(&self, profile: Option<&'p HostProfile>) -> Host<'p> {
        match (profile, self.host) {
            (Some(profile), _) => Host::Profile(profile),
            (None, Times::Profiled) => Host::Profiled,
            (None, _) => Host::Own,
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
