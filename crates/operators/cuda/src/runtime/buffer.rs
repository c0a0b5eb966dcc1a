//! Memory on the device.

use std::marker::PhantomData;

use bytemuck::Pod;
use cudarc::driver::result;

use super::{Device, Error, Slice, SliceMut, Stream, StreamUse};

/// Elements in a device's memory.
///
/// A buffer keeps the stream that used it last. A launch or a copy in another stream first waits for that one, unless
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
    /// A buffer of `len` elements with arbitrary values.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn uninit(device: &Device, len: usize) -> Result<Buffer<T>, Error> {
        device.bind()?;
        let bytes = len.saturating_mul(size_of::<T>());
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: freed once, when the buffer is dropped. Every bit pattern is a value of plain data.
            address = unsafe { result::malloc_sync(bytes) }.map_err(|_| Error::OutOfMemory {
                what: "a buffer on the GPU",
                bytes,
                free: result::mem_get_info().map_or(0, |(free, _)| free),
            })?;
        }
        let stream_use = StreamUse::new();
        Ok(Buffer { device: device.clone(), address, len, lent: false, stream_use, of: PhantomData })
    }

    /// A buffer over `len` elements of another library's memory, which it does not free.
    ///
    /// # Safety
    ///
    /// The elements are on the device and live as long as the buffer. Where another library uses them too, the caller
    /// orders the accesses.
    #[must_use]
    pub unsafe fn from_raw(device: &Device, address: u64, len: usize) -> Buffer<T> {
        let stream_use = StreamUse::new();
        Buffer { device: device.clone(), address, len, lent: true, stream_use, of: PhantomData }
    }

    /// A buffer of `len` zeros, set in this stream.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn zeros(stream: &Stream, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::uninit(stream.device(), len)?;
        buffer.as_mut().fill_bytes(stream, 0)?;
        Ok(buffer)
    }

    /// A copy of these elements, complete on return.
    ///
    /// # Errors
    ///
    /// Not enough memory.
    pub fn from_host(stream: &Stream, values: &[T]) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::uninit(stream.device(), values.len())?;
        buffer.as_mut().write(stream, values)?;
        Ok(buffer)
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device it is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// All elements, for reading.
    #[must_use]
    pub fn as_ref(&self) -> Slice<'_, T> {
        Slice::at(self.address, self.len, &self.stream_use)
    }

    /// All elements, for writing.
    #[must_use]
    pub fn as_mut(&mut self) -> SliceMut<'_, T> {
        SliceMut::at(self.address, self.len, &self.stream_use)
    }

    /// Records that this stream was waited for.
    pub(crate) fn done(&mut self, stream: &Stream) {
        self.stream_use.done(stream);
    }

    /// Transfers the use by `from` to `to`, which already waits for the work in `from`: accesses of `from` count as
    /// accesses of `to`.
    pub(crate) fn hand_over(&self, from: &Stream, to: &Stream) {
        self.stream_use.hand_over(from, to);
    }

    /// Records that `to` uses the buffer from now on, instead of `from`: launches in `to` do not wait for those in `from`.
    ///
    /// # Safety
    ///
    /// Work in `to` that uses elements which work in `from` writes, or writes elements which that uses, waits for it by events, and so does later
    /// work in `from` for work in `to`.
    pub unsafe fn pass_on(&self, from: &Stream, to: &Stream) {
        self.hand_over(from, to);
    }

    /// Copies all elements to the host, after the preceding work of the stream.
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
        // Kernels may still use it. If waiting for them fails, the memory is leaked.
        let waited = self.address != 0 && self.stream_use.wait(&self.device).is_ok();
        if waited && !self.lent && self.device.bind().is_ok() {
            // SAFETY: allocated once in `uninit`, and no stream uses it any more.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
