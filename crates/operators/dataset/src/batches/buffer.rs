//! Memory of batches.

use std::io;

/// Alignment of a batch's columns in bytes, and so of the first byte of a buffer.
pub const ALIGNMENT: usize = 64;

/// Memory of one batch, on the heap or pinned for copies to a GPU.
pub trait Buffer: Send + 'static {
    /// Its bytes.
    fn bytes(&self) -> &[u8];

    /// Its bytes, for writing.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Allocation of buffers. Each buffer is used for many batches.
pub trait Allocate: Send + Sync + 'static {
    /// Memory of one batch.
    type Buffer: Buffer;

    /// Allocates at least `bytes` bytes, the first of them aligned to [`ALIGNMENT`].
    ///
    /// # Errors
    ///
    /// If memory is exhausted.
    fn allocate(&self, bytes: usize) -> io::Result<Self::Buffer>;
}

/// Allocation on the heap.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heap;

/// Aligned memory on the heap.
#[derive(Debug)]
pub struct HeapBuffer {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Buffer for HeapBuffer {
    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.bytes]
    }
}

impl Allocate for Heap {
    type Buffer = HeapBuffer;

    fn allocate(&self, bytes: usize) -> io::Result<HeapBuffer> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes + ALIGNMENT).map_err(|_| io::ErrorKind::OutOfMemory)?;
        memory.resize(bytes + ALIGNMENT, 0);
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        if start > ALIGNMENT {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(HeapBuffer { memory, start, bytes })
    }
}
