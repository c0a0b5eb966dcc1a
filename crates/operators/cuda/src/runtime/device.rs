//! A GPU and its primary context.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::result::{self, primary_ctx};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};

use super::{Capability, CubinCache, Error};

/// The oldest GPUs that CUDA 13 supports.
const OLDEST: Capability = Capability { major: 7, minor: 5 };

/// A GPU. Clones refer to the same one.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    ordinal: usize,
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    capability: Capability,
    driver: u32,
    multiprocessors: u32,
    l2_bytes: usize,
    cache: CubinCache,
}

// SAFETY: the driver's handles may be used from every thread; each call binds the context to its own thread.
unsafe impl Send for Inner {}
// SAFETY: as above; nothing changes after `open`.
unsafe impl Sync for Inner {}

impl Device {
    /// Number of GPUs that the driver shows.
    ///
    /// # Errors
    ///
    /// The driver is missing, or cannot start.
    pub fn count() -> Result<usize, Error> {
        // SAFETY: only tries to load the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoDriver { why: "libcuda is not found".into() });
        }
        result::init().map_err(|error| Error::NoDriver { why: error.to_string() })?;
        let count = result::device::get_count().map_err(Error::driver("counting GPUs"))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Opens the GPU of this number. It shares its primary context with every other user in the process.
    ///
    /// # Errors
    ///
    /// No driver, no GPU of this number, or one that is too old.
    pub fn open(ordinal: usize) -> Result<Device, Error> {
        let count = Device::count()?;
        let place = i32::try_from(ordinal).ok().filter(|_| ordinal < count);
        let place = place.ok_or(Error::NoDevice { ordinal, count })?;
        let wrong = || Error::driver(format!("opening GPU {ordinal}"));
        let device = result::device::get(place).map_err(wrong())?;
        // SAFETY: the device is the driver's own.
        let read = |which| unsafe { result::device::get_attribute(device, which) }.map_err(wrong());
        let number = |which| read(which).map(|value| u32::try_from(value).unwrap_or(0));
        let capability = Capability {
            major: number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        };
        if capability < OLDEST {
            return Err(Error::TooOld {
                what: "this GPU's compute capability",
                found: capability.to_string(),
                needed: OLDEST.to_string(),
                remedy: "use a GPU of the Turing generation or later",
            });
        }
        let multiprocessors = number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let l2_bytes = number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize;
        let name = result::device::get_name(device).map_err(wrong())?;
        let mut version = 0;
        // SAFETY: the driver writes one number.
        unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(wrong())?;
        // SAFETY: the device is the driver's own; released when the last clone is dropped.
        let context = unsafe { primary_ctx::retain(device) }.map_err(wrong())?;
        let opened = Device(Arc::new(Inner {
            ordinal,
            device,
            context,
            name,
            capability,
            driver: u32::try_from(version).unwrap_or(0),
            multiprocessors,
            l2_bytes,
            cache: CubinCache::usual(),
        }));
        opened.bind()?;
        Ok(opened)
    }

    /// Makes its context current in this thread. All functions of this crate do so themselves.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn bind(&self) -> Result<(), Error> {
        // SAFETY: the context is retained as long as the device lives.
        unsafe { result::ctx::set_current(self.0.context) }.map_err(Error::driver("binding the context"))
    }

    /// The number by which it was opened.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its compute capability.
    #[must_use]
    pub fn capability(&self) -> Capability {
        self.0.capability
    }

    /// The CUDA version that its driver supports: 13000 is 13.0.
    #[must_use]
    pub fn driver(&self) -> u32 {
        self.0.driver
    }

    /// Number of multiprocessors.
    #[must_use]
    pub fn multiprocessors(&self) -> u32 {
        self.0.multiprocessors
    }

    /// Bytes of its second-level cache.
    #[must_use]
    pub fn l2_bytes(&self) -> usize {
        self.0.l2_bytes
    }

    /// The driver's handle.
    pub(crate) fn raw(&self) -> sys::CUdevice {
        self.0.device
    }

    /// Its primary context.
    pub(crate) fn context(&self) -> sys::CUcontext {
        self.0.context
    }

    /// Cache of its compiled kernels.
    pub(super) fn cubins(&self) -> &CubinCache {
        &self.0.cache
    }

    /// Bytes of memory: free, and in total.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        self.bind()?;
        result::mem_get_info().map_err(Error::driver("asking for free memory"))
    }

    /// Waits until all streams are done.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.bind()?;
        result::ctx::synchronize().map_err(Error::driver("waiting for the GPU"))
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}: {})", self.0.ordinal, self.0.name)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`. At the end of the process the driver may be gone, and the error does not
        // matter.
        let _ = unsafe { primary_ctx::release(self.device) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_there_is_an_error_and_no_panic() {
        match Device::open(1000) {
            Err(Error::NoDriver { .. } | Error::NoDevice { ordinal: 1000, .. }) => {}
            other => panic!("{other:?}"),
        }
        assert!(OLDEST < Capability { major: 9, minor: 0 });
    }
}
