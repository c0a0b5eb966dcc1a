//! The GPU of a recording.

use serde::Serialize;
use steptime_cuda::{Device, Error};

/// Properties of a GPU, by the names of PyTorch's profiler.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProperties {
    /// Number within the host.
    pub id: u32,
    /// Name, as the driver reports it.
    pub name: String,
    /// Bytes of its memory.
    pub total_global_mem: u64,
    /// Compute capability before the point.
    pub compute_major: u32,
    /// Compute capability after the point.
    pub compute_minor: u32,
    /// Number of multiprocessors.
    pub num_sms: u32,
    /// Number of threads that run in lockstep.
    pub warp_size: u32,
    /// Bytes of the second-level cache.
    pub l2_cache_size: u64,
}

impl DeviceProperties {
    /// The properties of a GPU.
    ///
    /// # Errors
    /// Where the driver fails.
    pub fn new(device: &Device) -> Result<DeviceProperties, Error> {
        let (_, bytes) = device.memory()?;
        let capability = device.capability();
        Ok(DeviceProperties {
            id: u32::try_from(device.ordinal()).unwrap_or(0),
            name: device.name().to_owned(),
            total_global_mem: bytes as u64,
            compute_major: capability.major,
            compute_minor: capability.minor,
            num_sms: device.multiprocessors(),
            warp_size: 32,
            l2_cache_size: device.l2_bytes() as u64,
        })
    }
}
