//! What can be said in a question.

use std::path::Path;
use std::sync::Arc;

use steptime_aten::Settings;
use steptime_cost::device::{DeviceProfile, Indices, ModelChoice};
use steptime_cost::{HostProfile, Probe, Process};

use super::host::{Times, read_host};
use super::{Device, Question};
use crate::device;
use crate::error::Error;
use crate::predict::Baseline;

impl<'s> Question<'s> {
    /// On this GPU: the name of a profile that ships (`h200`, see [`crate::devices`]), or a profile's folder. Every kernel
    /// is priced by the profile, from the arguments of the ops; none of the recording's times is used for it.
    ///
    /// # Errors
    /// Where there is no such profile.
    pub fn on(self, name: &str) -> Result<Self, Error> {
        Ok(self.on_read(name, Arc::new(device::device(name)?)))
    }

    /// On the GPU of a profile that was read under a name, once for many questions.
    pub fn on_read(mut self, name: &str, profile: Arc<DeviceProfile>) -> Self {
        self.device = Some(Device { name: name.to_owned(), profile });
        self
    }

    /// On the GPU of this profile.
    pub fn with(mut self, profile: DeviceProfile) -> Self {
        self.device = Some(Device { name: profile.spec.name.clone(), profile: Arc::new(profile) });
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

    /// The same question about each of these GPUs, in this order.
    ///
    /// # Errors
    /// Where there is no profile of one of them.
    pub fn on_each<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Self>, Error> {
        names.into_iter().map(|name| self.clone().on(name)).collect()
    }

    /// By the recording's own host, the profiler's cost taken off; of an execution trace alone there is none.
    pub fn on_its_own_host(mut self) -> Self {
        self.host = Times::Own;
        self
    }

    /// On the host of a file: a host profile, what a probe wrote, or a recording that holds a probe.
    ///
    /// # Errors
    /// Where it is none of these, or holds no probe.
    pub fn on_host(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let profile = Box::new(read_host(path.as_ref())?);
        self.host = Times::File { profile, name: path.as_ref().display().to_string() };
        Ok(self)
    }

    /// On the host of a profile that was read from a file of this name.
    pub fn on_host_read(mut self, profile: HostProfile, name: &str) -> Self {
        self.host = Times::File { profile: Box::new(profile), name: name.to_owned() };
        self
    }

    /// On the host of this profile.
    pub fn host(mut self, profile: &'s HostProfile) -> Self {
        self.host = Times::Profile(profile);
        self
    }

    /// On the host that a probe was measured on: another recording's ([`crate::Step::probe`]), or one read from a file.
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
    /// are taken. The recording's own host has no profile: name one, or a typical host.
    pub fn slower(mut self, times: f64) -> Self {
        self.slower = Some(times);
        self
    }

    /// In a process in this state, whatever the recording says: every runtime call takes longer once a profiler has run.
    pub fn in_process(mut self, process: Process) -> Self {
        self.process = process;
        self
    }

    /// By a simpler way than to simulate, where [`Question::answer`] is asked.
    pub fn by(mut self, way: Baseline) -> Self {
        self.way = Some(way);
        self
    }
}
