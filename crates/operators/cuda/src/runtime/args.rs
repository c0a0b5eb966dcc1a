//! The arguments of a kernel.

use std::ffi::c_void;

use bytemuck::Pod;

use super::{Error, Slice, SliceMut, Stream, StreamUse};

/// Arguments in the order of the kernel's parameters, and the memory that the kernel uses.
#[derive(Debug, Default)]
pub struct Args<'a> {
    /// 16-byte cells, so that structures are aligned.
    cells: Vec<u128>,
    starts: Vec<usize>,
    read: Vec<&'a StreamUse>,
    written: Vec<&'a StreamUse>,
}

impl<'a> Args<'a> {
    /// No arguments.
    #[must_use]
    pub fn new() -> Args<'a> {
        Args::default()
    }

    /// Adds a number or a structure, passed by value; its type must be that of the kernel's parameter.
    #[must_use]
    pub fn value<T: Pod>(mut self, value: T) -> Args<'a> {
        self.add(bytemuck::bytes_of(&value));
        self
    }

    /// Adds an array inside a structure, passed by value.
    #[must_use]
    pub fn array<T: Pod>(mut self, values: &[T]) -> Args<'a> {
        self.add(bytemuck::cast_slice(values));
        self
    }

    /// Adds the address of elements that the kernel reads.
    #[must_use]
    pub fn slice<T: Pod>(self, slice: Slice<'a, T>) -> Args<'a> {
        self.value(slice.address()).reads(slice)
    }

    /// Adds the address of elements that the kernel writes.
    #[must_use]
    pub fn slice_mut<T: Pod>(self, slice: &'a mut SliceMut<'_, T>) -> Args<'a> {
        self.value(slice.address()).writes(slice.as_ref())
    }

    /// Adds the address of elements that the kernel writes, in memory that an operator keeps for itself.
    #[must_use]
    pub(crate) fn own<T: Pod>(self, slice: Slice<'a, T>) -> Args<'a> {
        self.value(slice.address()).writes(slice)
    }

    /// Registers elements that the kernel reads, whose address is passed elsewhere, for example in a structure.
    #[must_use]
    pub fn reads<T: Pod>(mut self, slice: Slice<'a, T>) -> Args<'a> {
        self.read.extend(slice.stream_use());
        self
    }

    /// Registers elements that the kernel writes, whose address is passed elsewhere, for example in a structure.
    #[must_use]
    pub fn writes<T: Pod>(mut self, slice: Slice<'a, T>) -> Args<'a> {
        self.written.extend(slice.stream_use());
        self
    }

    /// Waits where another stream may still use the memory, and records that this stream uses it from now on.
    pub(crate) fn take_turn(&self, stream: &Stream) -> Result<(), Error> {
        self.read.iter().try_for_each(|memory| memory.read(stream))?;
        self.written.iter().try_for_each(|memory| memory.write(stream))
    }

    fn add(&mut self, bytes: &[u8]) {
        let start = self.cells.len();
        self.starts.push(start);
        self.cells.resize(start + bytes.len().div_ceil(16).max(1), 0);
        bytemuck::cast_slice_mut(&mut self.cells[start..])[..bytes.len()].copy_from_slice(bytes);
    }

    /// Addresses of the arguments, for the driver.
    pub(super) fn pointers(&mut self) -> Vec<*mut c_void> {
        let cells = &mut self.cells;
        self.starts.iter().map(|&start| (&raw mut cells[start]).cast()).collect()
    }
}
