//! Parts of a device's memory, for reading or writing.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;
use cudarc::driver::result;

use super::{Error, Stream, StreamUse};

/// Elements on a device, for reading: part of a [`Buffer`](crate::Buffer), or memory of others.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a, T> {
    address: u64,
    len: usize,
    /// Use of the buffer; `None` for memory of others.
    stream_use: Option<&'a StreamUse>,
    of: PhantomData<&'a [T]>,
}

/// Elements on a device, for writing.
#[derive(Debug)]
pub struct SliceMut<'a, T> {
    address: u64,
    len: usize,
    /// Use of the buffer; `None` for memory of others.
    stream_use: Option<&'a StreamUse>,
    of: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> Slice<'a, T> {
    /// `len` elements of a buffer.
    pub(super) fn at(address: u64, len: usize, stream_use: &'a StreamUse) -> Slice<'a, T> {
        Slice { address, len, stream_use: Some(stream_use), of: PhantomData }
    }

    /// Elements in memory of others, such as a tensor of another library.
    ///
    /// # Safety
    ///
    /// There are `len` aligned elements at this address of the device. They live and do not change for `'a` and until
    /// the streams have passed all launches that read them: nothing waits automatically for memory of others.
    #[must_use]
    pub unsafe fn from_raw(address: u64, len: usize) -> Slice<'a, T> {
        Slice { address, len, stream_use: None, of: PhantomData }
    }

    /// Address of the first element.
    #[must_use]
    pub fn address(self) -> u64 {
        self.address
    }

    /// Number of elements.
    #[must_use]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Streams that may still use their buffer; `None` for memory of others.
    pub(crate) fn stream_use(self) -> Option<&'a StreamUse> {
        self.stream_use
    }

    /// Waits for another stream that may still write them, before `stream` reads them.
    pub(crate) fn before_reading(self, stream: &Stream) -> Result<(), Error> {
        self.stream_use.map_or(Ok(()), |memory| memory.read(stream))?;
        stream.device().bind()
    }

    /// A range of the elements.
    ///
    /// # Panics
    ///
    /// The range is out of bounds.
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Slice<'a, T> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        let address = self.address + (range.start * size_of::<T>()) as u64;
        Slice { address, len: range.len(), stream_use: self.stream_use, of: PhantomData }
    }

    /// The same memory as elements of another type; a partial element at the end is left out.
    #[must_use]
    pub fn cast<U: Pod>(self) -> Slice<'a, U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        Slice { address: self.address, len, stream_use: self.stream_use, of: PhantomData }
    }

    /// Copies the elements to the host, after the preceding work of the stream, and waits.
    ///
    /// # Errors
    ///
    /// A destination of another length; a kernel failed.
    pub fn read(self, stream: &Stream, to: &mut [T]) -> Result<(), Error> {
        same("a copy to the host", to.len(), self.len)?;
        self.before_reading(stream)?;
        if !to.is_empty() {
            // SAFETY: both have one length, and the stream is waited for before `to` is used again.
            unsafe { result::memcpy_dtoh_async(to, self.address, stream.raw()) }
                .map_err(Error::driver("copying to the host"))?;
        }
        stream.synchronize()
    }
}

impl<'a, T: Pod> SliceMut<'a, T> {
    /// `len` elements of a buffer.
    pub(super) fn at(address: u64, len: usize, stream_use: &'a StreamUse) -> SliceMut<'a, T> {
        SliceMut { address, len, stream_use: Some(stream_use), of: PhantomData }
    }

    /// Elements in memory of others, such as a tensor of another library.
    ///
    /// # Safety
    ///
    /// There are `len` aligned elements at this address of the device. They live, and no other code uses them, for `'a`
    /// and until the streams have passed all launches that write them: nothing waits automatically for memory of
    /// others.
    #[must_use]
    pub unsafe fn from_raw(address: u64, len: usize) -> SliceMut<'a, T> {
        SliceMut { address, len, stream_use: None, of: PhantomData }
    }

    /// Address of the first element.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
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

    /// The same elements, for reading.
    #[must_use]
    pub fn as_ref(&self) -> Slice<'_, T> {
        Slice { address: self.address, len: self.len, stream_use: self.stream_use, of: PhantomData }
    }

    /// The same elements, for reading, as long as the memory is borrowed.
    #[must_use]
    pub fn into_ref(self) -> Slice<'a, T> {
        Slice { address: self.address, len: self.len, stream_use: self.stream_use, of: PhantomData }
    }

    /// The same elements once more, for a kernel that writes other elements through each of both.
    pub(crate) fn again(&self) -> SliceMut<'a, T> {
        SliceMut { address: self.address, len: self.len, stream_use: self.stream_use, of: PhantomData }
    }

    /// The elements before a position, and those from it on.
    ///
    /// # Panics
    ///
    /// The position is out of bounds.
    #[must_use]
    pub fn split_at(self, at: usize) -> (SliceMut<'a, T>, SliceMut<'a, T>) {
        assert!(at <= self.len, "{at} of {}", self.len);
        let part = |address, len| SliceMut { address, len, stream_use: self.stream_use, of: PhantomData };
        let middle = self.address + (at * size_of::<T>()) as u64;
        (part(self.address, at), part(middle, self.len - at))
    }

    /// Waits for other streams that may still use them, before `stream` writes them.
    pub(crate) fn before_writing(&mut self, stream: &Stream) -> Result<(), Error> {
        self.stream_use.map_or(Ok(()), |memory| memory.write(stream))?;
        stream.device().bind()
    }

    /// A range of the elements.
    ///
    /// # Panics
    ///
    /// The range is out of bounds.
    #[must_use]
    pub fn slice(&mut self, range: Range<usize>) -> SliceMut<'_, T> {
        let Slice { address, len, .. } = self.as_ref().slice(range);
        SliceMut { address, len, stream_use: self.stream_use, of: PhantomData }
    }

    /// The same memory as elements of another type; a partial element at the end is left out.
    #[must_use]
    pub fn cast<U: Pod>(self) -> SliceMut<'a, U> {
        let Slice { address, len, .. } = self.as_ref().cast::<U>();
        SliceMut { address, len, stream_use: self.stream_use, of: PhantomData }
    }

    /// Copies elements from the host and waits.
    ///
    /// # Errors
    ///
    /// A source of another length; a kernel failed.
    pub fn write(&mut self, stream: &Stream, from: &[T]) -> Result<(), Error> {
        same("a copy from the host", from.len(), self.len)?;
        self.before_writing(stream)?;
        if !from.is_empty() {
            // SAFETY: both have one length, and the stream is waited for before `from` may change.
            unsafe { result::memcpy_htod_async(self.address, from, stream.raw()) }
                .map_err(Error::driver("copying from the host"))?;
        }
        stream.synchronize()?;
        if let Some(memory) = self.stream_use {
            memory.done(stream);
        }
        Ok(())
    }

    /// Copies elements of the device, in the order of the stream.
    ///
    /// # Errors
    ///
    /// A source of another length; the driver refuses.
    pub fn copy(&mut self, stream: &Stream, from: Slice<'_, T>) -> Result<(), Error> {
        same("a copy on the GPU", from.len(), self.len)?;
        from.before_reading(stream)?;
        self.before_writing(stream)?;
        if self.len == 0 {
            return Ok(());
        }
        // SAFETY: both have one length. Other streams that used either were waited for.
        unsafe {
            result::memcpy_dtod_async(self.address, from.address, self.len * size_of::<T>(), stream.raw())
        }
        .map_err(Error::driver("copying on the GPU"))
    }

    /// Sets every byte, in the order of the stream.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn fill_bytes(&mut self, stream: &Stream, byte: u8) -> Result<(), Error> {
        self.before_writing(stream)?;
        if self.len == 0 {
            return Ok(());
        }
        // SAFETY: the length is that of the slice. Other streams that used it were waited for.
        unsafe { result::memset_d8_async(self.address, byte, self.len * size_of::<T>(), stream.raw()) }
            .map_err(Error::driver("setting memory"))
    }
}

/// Fails where two lengths differ.
pub(super) fn same(what: &'static str, found: usize, needed: usize) -> Result<(), Error> {
    if found == needed { Ok(()) } else { Err(Error::Size { what, found, needed }) }
}
