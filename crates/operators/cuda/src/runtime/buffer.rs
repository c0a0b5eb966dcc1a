//! Memory on the device.

use std::marker::PhantomData;

use bytemuck::Pod;
use cudarc::driver::result;

use super::{Device, Error, Slice, SliceMut, Stream, StreamUse};

/// Elements in a device's memory.
///
/// A buffer knows the stream that used it last. A launch or a copy in another stream first waits for that one, unless
/// both only read; so does the buffer before its memory is freed. Within one stream nothing waits.
#[derive(Debug)]
pub struct Buffer<T> {
    device: Device,
    address: u64,
    len: usize,
    lent: bool,
    stream_use: StreamUse,
    of: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// So many elements, whose values are whatever was there.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn uninit(device: &Device, len: usize) -> Result<Buffer<T>, Error> {
        device.bind()?;
        let bytes = len.saturating_mul(size_of::<T>());
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: freed once, when the buffer goes. Every bit pattern is a value of plain data.
            address = unsafe { result::malloc_sync(bytes) }.map_err(|_| Error::OutOfMemory {
                what: "a buffer on the GPU",
                bytes,
                free: result::mem_get_info().map_or(0, |(free, _)| free),
            })?;
        }
        let stream_use = StreamUse::new();
        Ok(Buffer { device: device.clone(), address, len, lent: false, stream_use, of: PhantomData })
    }

    /// So many elements of another library's memory, which this does not free.
    ///
    /// # Safety
    ///
    /// They are on the device and live as long as the buffer. Where another library uses them too, the caller orders it.
    #[must_use]
    pub unsafe fn from_raw(device: &Device, address: u64, len: usize) -> Buffer<T> {
        let stream_use = StreamUse::new();
        Buffer { device: device.clone(), address, len, lent: true, stream_use, of: PhantomData }
    }

    /// So many zeros, set in this stream.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn zeros(stream: &Stream, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::uninit(stream.device(), len)?;
        buffer.as_mut().fill_bytes(stream, 0)?;
        Ok(buffer)
    }

    /// A copy of these elements, done when this returns.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn from_host(stream: &Stream, values: &[T]) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::uninit(stream.device(), values.len())?;
        buffer.as_mut().write(stream, values)?;
        Ok(buffer)
    }

    /// How many elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device it is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// All elements, to be read.
    #[must_use]
    pub fn as_ref(&self) -> Slice<'_, T> {
        Slice::at(self.address, self.len, &self.stream_use)
    }

    /// All elements, to be written.
    #[must_use]
    pub fn as_mut(&mut self) -> SliceMut<'_, T> {
        SliceMut::at(self.address, self.len, &self.stream_use)
    }

    /// Notes that this stream was waited for.
    pub(crate) fn done(&mut self, stream: &Stream) {
        self.stream_use.done(stream);
    }

    /// After `to` was told to wait for what `from` holds: what `from` did is as if `to` had done it.
    pub(crate) fn hand_over(&self, from: &Stream, to: &Stream) {
        self.stream_use.hand_over(from, to);
    }

    /// All elements on the host, once the stream has come this far.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn to_host(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        let mut values = vec![T::zeroed(); self.len];
        self.as_ref().read(stream, &mut values)?;
        Ok(values)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // Kernels may still use it. Where they cannot be waited for, the memory stays.
        let waited = self.address != 0 && self.stream_use.wait(&self.device).is_ok();
        if waited && !self.lent && self.device.bind().is_ok() {
            // SAFETY: allocated once in `uninit`, and no stream uses it any more.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
