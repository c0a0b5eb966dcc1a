//! Settings of a query.

use std::path::Path;
use std::sync::Arc;

use steptime_aten::Settings;
use steptime_cost::device::{DeviceProfile, Indices, ModelChoice};
use steptime_cost::{HostProfile, Probe, Process};

use super::host::{Times, read_host};
use super::{Device, Query};
use crate::error::Error;
use crate::predict::Baseline;
use crate::pricing;

impl<'s> Query<'s> {
    /// Predicts for this GPU: the name of a shipped profile (`h200`, see [`crate::devices`]), or a profile's folder. Every kernel
    /// is priced by the profile, from the arguments of the ops; none of the recording's times is used for it.
    ///
    /// # Errors
    /// Fails where there is not such a profile.
    pub fn on(self, name: &str) -> Result<Self, Error> {
        Ok(self.on_read(name, Arc::new(pricing::device(name)?)))
    }

    /// Predicts for the GPU of a profile that was read once under a name, for use in many queries.
    pub fn on_read(mut self, name: &str, profile: Arc<DeviceProfile>) -> Self {
        self.device = Some(Device { name: name.to_owned(), profile });
        self
    }

    /// Predicts for the GPU of this profile.
    pub fn with(mut self, profile: DeviceProfile) -> Self {
        self.device = Some(Device { name: profile.spec.name.clone(), profile: Arc::new(profile) });
        self
    }

    /// Sets which models of the profile price kernels.
    pub fn models(mut self, models: ModelChoice) -> Self {
        self.models = models;
        self
    }

    /// Sets the distribution of lookup indices.
    pub fn indices(mut self, indices: Indices) -> Self {
        self.indices = indices;
        self
    }

    /// Sets PyTorch settings that execution traces do not record.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Makes the same query for each of these GPUs, in this order.
    ///
    /// # Errors
    /// Fails where one of them has no profile.
    pub fn on_each<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Self>, Error> {
        names.into_iter().map(|name| self.clone().on(name)).collect()
    }

    /// Uses the recording's own host, the profiler's cost taken off; an execution trace alone has none.
    pub fn on_its_own_host(mut self) -> Self {
        self.host = Times::Own;
        self
    }

    /// Uses the host of a file: a host profile, the output of a probe, or a recording with a probe.
    ///
    /// # Errors
    /// Fails where the file is none of these, or has no probe.
    pub fn on_host(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let profile = Box::new(read_host(path.as_ref())?);
        self.host = Times::File { profile, name: path.as_ref().display().to_string() };
        Ok(self)
    }

    /// Uses a host profile that was read from a file of this name.
    pub fn on_host_read(mut self, profile: HostProfile, name: &str) -> Self {
        self.host = Times::File { profile: Box::new(profile), name: name.to_owned() };
        self
    }

    /// Uses the host of this profile.
    pub fn host(mut self, profile: &'s HostProfile) -> Self {
        self.host = Times::Profile(profile);
        self
    }

    /// Uses the host that a probe was measured on: another recording's ([`crate::Step::probe`]), or one read from a file.
    pub fn on_host_of(mut self, probe: Probe) -> Self {
        self.host = Times::Probed(probe);
        self
    }

    /// Uses a host of typical speed, whatever the recording's host was.
    pub fn on_a_typical_host(mut self) -> Self {
        self.host = Times::Typical;
        self
    }

    /// Predicts the step as profiled: the profiler's cost stays in.
    pub fn as_profiled(mut self) -> Self {
        self.host = Times::Profiled;
        self
    }

    /// Slows the host: everything takes `times` as long as in the profile. 1.7 is 1.7 times as slow; 0.05 to 50
    /// are accepted. The recording's own host has no profile: give one, or use a typical host.
    pub fn slower(mut self, times: f64) -> Self {
        self.slower = Some(times);
        self
    }

    /// Predicts for a process in this state, whatever the recording says: every runtime call takes longer once a profiler has run.
    pub fn in_process(mut self, process: Process) -> Self {
        self.process = process;
        self
    }

    /// Selects a baseline method in place of the simulation, for answers as plain data.
    pub fn by(mut self, way: Baseline) -> Self {
        self.way = Some(way);
        self
    }
}
