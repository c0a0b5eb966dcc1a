//! The arguments of a kernel.

use std::ffi::c_void;

use bytemuck::Pod;

use super::{Slice, SliceMut};

/// Arguments in the order of the kernel's parameters.
#[derive(Debug, Default)]
pub struct Args {
    /// 16-byte cells, so that structures are aligned.
    cells: Vec<u128>,
    starts: Vec<usize>,
}

impl Args {
    /// None yet.
    #[must_use]
    pub fn new() -> Args {
        Args::default()
    }

    /// With a number or a structure, passed by value; its type must be that of the kernel's parameter.
    #[must_use]
    pub fn value<T: Pod>(mut self, value: T) -> Args {
        self.add(bytemuck::bytes_of(&value));
        self
    }

    /// With an array inside a structure, passed by value.
    #[must_use]
    pub fn array<T: Pod>(mut self, values: &[T]) -> Args {
        self.add(bytemuck::cast_slice(values));
        self
    }

    /// With the address of elements that the kernel reads.
    #[must_use]
    pub fn slice<T: Pod>(self, slice: Slice<'_, T>) -> Args {
        self.value(slice.address())
    }

    /// With the address of elements that the kernel writes.
    #[must_use]
    pub fn slice_mut<T: Pod>(self, slice: &mut SliceMut<'_, T>) -> Args {
        self.value(slice.address())
    }

    fn add(&mut self, bytes: &[u8]) {
        let start = self.cells.len();
        self.starts.push(start);
        self.cells.resize(start + bytes.len().div_ceil(16).max(1), 0);
        bytemuck::cast_slice_mut(&mut self.cells[start..])[..bytes.len()].copy_from_slice(bytes);
    }

    /// Their addresses, as the driver wants them.
    pub(super) fn pointers(&mut self) -> Vec<*mut c_void> {
        let cells = &mut self.cells;
        self.starts.iter().map(|&start| (&raw mut cells[start]).cast()).collect()
    }
}
