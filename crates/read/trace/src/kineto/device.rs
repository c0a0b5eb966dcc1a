//! The properties of a device.

use crate::json::{Cursor, Fault};
use crate::units::Bytes;

/// A device, as the runtime describes it; what the trace does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Its number within the host.
    pub id: u32,
    /// Its name, `NVIDIA H200`.
    pub name: String,
    /// Its memory.
    pub total_global_mem: Option<Bytes>,
    /// Compute capability before the point.
    pub compute_major: Option<u32>,
    /// Compute capability after the point.
    pub compute_minor: Option<u32>,
    /// Streaming multiprocessors, or compute units.
    pub num_sms: Option<u32>,
    /// Threads that run in lockstep.
    pub warp_size: Option<u32>,
    /// The most threads of a block.
    pub max_threads_per_block: Option<u32>,
    /// The most threads resident on a multiprocessor.
    pub max_threads_per_multiprocessor: Option<u32>,
    /// Registers a block can have.
    pub regs_per_block: Option<u32>,
    /// Registers of a multiprocessor.
    pub regs_per_multiprocessor: Option<u32>,
    /// Shared memory a block can have without asking.
    pub shared_mem_per_block: Option<Bytes>,
    /// Shared memory a block can have on request.
    pub shared_mem_per_block_optin: Option<Bytes>,
    /// Shared memory of a multiprocessor.
    pub shared_mem_per_multiprocessor: Option<Bytes>,
    /// Second-level cache.
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
