//! Settings of a prediction: GPU, host and process.

use serde::Serialize;
use steptime_cost::Process;
use steptime_cost::device::DeviceProfile;

use crate::time_sources::{Host, Kernels};

/// Settings of a prediction, as named in the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryEcho {
    /// Source of the host's times: `own`, `profiled`, `default`, or a file.
    pub host: String,
    /// Assumed slowness of the host, where one factor gives it.
    pub host_slower_than: Option<HostSlowdown>,
    /// Whether the host is a typical one because the actual one is unknown.
    pub host_assumed: bool,
    /// Uncertainty of an assumed or given host: half-width of 90 %, logarithm of a factor; `None` for the recording's own.
    pub host_half_width: Option<f64>,
    /// Source of the kernels' times: `measured`, or the GPU as given.
    pub kernels: String,
    /// The GPU, where one was given.
    pub device: Option<DeviceEcho>,
    /// The state of the predicted process.
    pub process: Process,
}

/// A host that takes a given factor as long as a machine for everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostSlowdown {
    /// The factor.
    pub times: f64,
    /// Name of the machine.
    pub machine: String,
}

/// A GPU that kernels are priced for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceEcho {
    /// The device's own name.
    pub name: String,
    /// Whether its profile was fitted; else it is a specification.
    pub fitted: bool,
    /// Whether it multiplies float32 matrices in TF32 where that is allowed.
    pub has_tf32: bool,
}

impl DeviceEcho {
    /// The GPU of a profile.
    pub(crate) fn from_profile(profile: &DeviceProfile) -> DeviceEcho {
        DeviceEcho {
            name: profile.spec.name.clone(),
            fitted: profile.is_swept(),
            has_tf32: profile.spec.peak.tf32_tflop_s > 0.0,
        }
    }
}

impl QueryEcho {
    /// Describes a host and kernels by the names that they carry themselves.
    pub(crate) fn new(host: &Host<'_>, kernels: &Kernels<'_>, process: Process) -> QueryEcho {
        let (name, device) = match kernels {
            Kernels::Measured => ("measured".to_owned(), None),
            Kernels::Device { profile, .. } => {
                (profile.name.clone(), Some(DeviceEcho::from_profile(profile)))
            }
        };
        let host = match host {
            Host::Own => "own",
            Host::Profiled => "profiled",
            Host::Profile(_) => "profile",
        };
        QueryEcho {
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
