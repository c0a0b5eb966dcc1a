//! Host memory that the device accesses without a copy in between.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Pod;
use cudarc::driver::result;
use cudarc::driver::sys;

use super::slice::same;
use super::{Device, Error, Slice, SliceMut, Stream};

/// Elements in pinned and mapped host memory: copies run at the link's full rate, concurrently with kernels, and
/// kernels can read it in place.
#[derive(Debug)]
pub struct Pinned<T> {
    device: Device,
    start: NonNull<T>,
    len: usize,
}

// SAFETY: it owns plain data.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T: Pod> Pinned<T> {
    /// `len` zeros.
    ///
    /// # Errors
    ///
    /// The system cannot pin that much memory.
    pub fn zeros(device: &Device, len: usize) -> Result<Pinned<T>, Error> {
        device.bind()?;
        let bytes = len.saturating_mul(size_of::<T>());
        let mut start = NonNull::dangling();
        if bytes > 0 {
            // SAFETY: freed once, when the buffer is dropped.
            let found = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_DEVICEMAP) };
            let found = found.ok().and_then(|start| NonNull::new(start.cast::<T>()));
            start = found.ok_or_else(|| Error::OutOfMemory {
                what: "pinned memory",
                bytes,
                free: result::mem_get_info().map_or(0, |(free, _)| free),
            })?;
            // SAFETY: as many bytes were allocated.
            unsafe { start.cast::<u8>().write_bytes(0, bytes) };
        }
        Ok(Pinned { device: device.clone(), start, len })
    }

    /// The elements for kernels, which access them in place over the link.
    ///
    /// # Safety
    ///
    /// The elements are not changed or freed before the streams have passed all launches that read them: nothing waits
    /// for these automatically, unlike for device memory.
    #[must_use]
    pub unsafe fn on_device(&self) -> Slice<'_, T> {
        // SAFETY: with unified addressing, which every supported GPU has, the address is the same on the device. By the
        // caller's promise, no code writes while kernels read.
        unsafe { Slice::from_raw(self.start.as_ptr().expose_provenance() as u64, self.len) }
    }
}

impl<T: Pod> Slice<'_, T> {
    /// Starts to copy the elements to pinned memory.
    ///
    /// # Safety
    ///
    /// `to` is not used, freed or moved out of before the stream has passed the copy.
    ///
    /// # Errors
    ///
    /// A destination of another length; the driver refuses.
    pub unsafe fn read_async(self, stream: &Stream, to: &mut Pinned<T>) -> Result<(), Error> {
        same("a copy to the host", to.len(), self.len())?;
        self.before_reading(stream)?;
        // SAFETY: by the caller's promise.
        unsafe { result::memcpy_dtoh_async(&mut to[..], self.address(), stream.raw()) }
            .map_err(Error::driver("copying to pinned memory"))
    }
}

impl<T: Pod> SliceMut<'_, T> {
    /// Starts to copy elements from pinned memory.
    ///
    /// # Safety
    ///
    /// `from` is not changed or freed before the stream has passed the copy.
    ///
    /// # Errors
    ///
    /// A source of another length; the driver refuses.
    pub unsafe fn write_async(&mut self, stream: &Stream, from: &Pinned<T>) -> Result<(), Error> {
        same("a copy from the host", from.len(), self.len())?;
        self.before_writing(stream)?;
        // SAFETY: by the caller's promise.
        unsafe { result::memcpy_htod_async(self.address(), &from[..], stream.raw()) }
            .map_err(Error::driver("copying from pinned memory"))
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as many elements were allocated and initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as many elements were allocated and initialised.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.len * size_of::<T>() > 0 && self.device.bind().is_ok() {
            // SAFETY: allocated by `malloc_host`, and freed once.
            let _ = unsafe { result::free_host(self.start.as_ptr().cast()) };
        }
    }
}
