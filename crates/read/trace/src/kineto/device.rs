//! Properties of a device.

use crate::json::{Cursor, Fault};
use crate::units::Bytes;

/// Device, as the runtime describes it; properties that the trace does not have are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Number within the host.
    pub id: u32,
    /// Name, for example `NVIDIA H200`.
    pub name: String,
    /// Size of its memory.
    pub total_global_mem: Option<Bytes>,
    /// Compute capability before the point.
    pub compute_major: Option<u32>,
    /// Compute capability after the point.
    pub compute_minor: Option<u32>,
    /// Streaming multiprocessors, or compute units.
    pub num_sms: Option<u32>,
    /// Threads that run in lockstep.
    pub warp_size: Option<u32>,
    /// Maximum number of threads per block.
    pub max_threads_per_block: Option<u32>,
    /// Maximum number of resident threads per multiprocessor.
    pub max_threads_per_multiprocessor: Option<u32>,
    /// Maximum number of registers per block.
    pub regs_per_block: Option<u32>,
    /// Registers per multiprocessor.
    pub regs_per_multiprocessor: Option<u32>,
    /// Maximum shared memory per block by default.
    pub shared_mem_per_block: Option<Bytes>,
    /// Maximum shared memory per block on request.
    pub shared_mem_per_block_optin: Option<Bytes>,
    /// Shared memory per multiprocessor.
    pub shared_mem_per_multiprocessor: Option<Bytes>,
    /// Size of the second-level cache.
    pub l2_cache: Option<Bytes>,
}

impl DeviceProperties {
    pub(crate) fn read_list(cursor: &mut Cursor<'_>) -> Result<Vec<DeviceProperties>, Fault> {
        let mut devices = Vec::new();
        if cursor.enter_array()? {
            while cursor.item()? {
                devices.extend(DeviceProperties::read(cursor)?);
            }
        }
        Ok(devices)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Option<DeviceProperties>, Fault> {
        if !cursor.enter_object()? {
            return Ok(None);
        }
        let mut device = DeviceProperties::default();
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"id" => device.id = count(cursor)?.unwrap_or(0),
                b"name" => device.name = cursor.string()?.map(|text| text.decoded()).unwrap_or_default(),
                b"totalGlobalMem" => device.total_global_mem = bytes(cursor)?,
                b"computeMajor" => device.compute_major = count(cursor)?,
                b"computeMinor" => device.compute_minor = count(cursor)?,
                b"numSms" => device.num_sms = count(cursor)?,
                b"warpSize" | b"waveSize" => device.warp_size = count(cursor)?,
                b"maxThreadsPerBlock" => device.max_threads_per_block = count(cursor)?,
                b"maxThreadsPerMultiprocessor" => device.max_threads_per_multiprocessor = count(cursor)?,
                b"regsPerBlock" => device.regs_per_block = count(cursor)?,
                b"regsPerMultiprocessor" => device.regs_per_multiprocessor = count(cursor)?,
                b"sharedMemPerBlock" => device.shared_mem_per_block = bytes(cursor)?,
                b"sharedMemPerBlockOptin" => device.shared_mem_per_block_optin = bytes(cursor)?,
                b"sharedMemPerMultiprocessor" => device.shared_mem_per_multiprocessor = bytes(cursor)?,
                b"l2CacheSize" => device.l2_cache = bytes(cursor)?,
                _ => cursor.skip()?,
            }
        }
        Ok(Some(device))
    }
}

fn count(cursor: &mut Cursor<'_>) -> Result<Option<u32>, Fault> {
    Ok(cursor.unsigned()?.and_then(|number| u32::try_from(number).ok()))
}

fn bytes(cursor: &mut Cursor<'_>) -> Result<Option<Bytes>, Fault> {
    Ok(cursor.unsigned()?.map(Bytes))
}
