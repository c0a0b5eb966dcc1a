//! What a prediction was asked for: on which GPU, by whose host.

use serde::Serialize;
use steptime_cost::Process;
use steptime_cost::device::DeviceProfile;

use crate::sources::{Host, Kernels};

/// What was asked for, in the words of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Where the host's times come from: `own`, `profiled`, `default`, or a file.
    pub host: String,
    /// How slow the host is taken to be, where one factor says it.
    pub host_slower_than: Option<HostSlowerThan>,
    /// Whether the host is a typical one because nothing is known of it.
    pub host_assumed: bool,
    /// How far an assumed or named host may be off: half-width of 90 %, logarithm of a factor; `None` for the recording's own.
    pub host_half_width: Option<f64>,
    /// Where the kernels' times come from: `measured`, or the GPU as it was named.
    pub kernels: String,
    /// The GPU, where one was named.
    pub device: Option<DeviceAsked>,
    /// The state of the process to predict.
    pub process: Process,
}

/// A host that takes so many times as long as a machine for everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostSlowerThan {
    /// How many times as long.
    pub times: f64,
    /// The machine.
    pub machine: String,
}

/// A GPU that kernels are priced for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAsked {
    /// What it calls itself.
    pub name: String,
    /// Whether its profile was fitted; else it is a specification.
    pub fitted: bool,
    /// Whether it multiplies float32 matrices in TF32 where that is allowed.
    pub has_tf32: bool,
}

impl DeviceAsked {
    /// The GPU of a profile.
    pub(crate) fn of(profile: &DeviceProfile) -> DeviceAsked {
        DeviceAsked {
            name: profile.spec.name.clone(),
            fitted: profile.is_swept(),
            has_tf32: profile.spec.peak.tf32_tflop_s > 0.0,
        }
    }
}

impl Asked {
    /// In as many words as a host and kernels say by themselves.
    pub(crate) fn of(host: &Host<'_>, kernels: &Kernels<'_>, process: Process) -> Asked {
        let (name, device) = match kernels {
            Kernels::Measured => ("measured".to_owned(), None),
            Kernels::Device { profile, .. } => (profile.name.clone(), Some(DeviceAsked::of(profile))),
        };
        let host = match host {
            Host::Own => "own",
            Host::Profiled => "profiled",
            Host::Profile(_) => "profile",
        };
        Asked {
            host: host.to_owned(),
            host_slower_than: None,
            host_assumed: false,
            host_half_width: None,
            kernels: name,
            device,
            process,
        }
    }
}
