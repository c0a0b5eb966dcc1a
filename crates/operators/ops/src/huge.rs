//! Memory in huge pages: otherwise random rows of a large table would miss the TLB with every lookup.

use std::fmt;
use std::io;

use memmap2::MmapMut;

const HUGE_PAGE: usize = 2 << 20;

/// Zeroed memory of the process, in huge pages of 2 MiB if it is that large and the system has them.
pub struct HugeBuffer {
    map: MmapMut,
    start: usize,
    len: usize,
}

impl HugeBuffer {
    /// Allocates `len` zero bytes. The system maps a page when it is first written.
    ///
    /// # Errors
    ///
    /// The system does not have that much memory.
    pub fn zeroed(len: usize) -> io::Result<HugeBuffer> {
        let slack = if len >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        let total = len.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = MmapMut::map_anon(total.max(1))?;
        let start = if slack > 0 { map.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        #[cfg(target_os = "linux")]
        if slack > 0 && !cfg!(miri) {
            // The call fails where the system has no huge pages: small ones work as well, only slower.
            let _ = map.advise_range(memmap2::Advice::HugePage, start, len.next_multiple_of(4096));
        }
        Ok(HugeBuffer { map, start, len })
    }

    /// Allocates `count` zeros of a plain type.
    ///
    /// # Errors
    ///
    /// The system does not have that much memory.
    pub fn zeros_of<T: bytemuck::Pod>(count: usize) -> io::Result<HugeBuffer> {
        HugeBuffer::zeroed(count.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.start + self.len]
    }

    /// The bytes, for writing.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.len]
    }

    /// Returns the memory as a slice of a plain type.
    ///
    /// # Panics
    ///
    /// The size is not a multiple of the type's.
    #[must_use]
    pub fn as_slice<T: bytemuck::Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }

    /// Returns the memory as a slice of a plain type, for writing.
    ///
    /// # Panics
    ///
    /// The size is not a multiple of the type's.
    #[must_use]
    pub fn as_mut_slice<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes_mut())
    }
}

impl fmt::Debug for HugeBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HugeBuffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zero_and_large_ones_begin_a_huge_page() {
        for len in [0, 4, 4096, HUGE_PAGE - 4, HUGE_PAGE, 2 * HUGE_PAGE + 12] {
            let mut buffer = HugeBuffer::zeroed(len).unwrap();
            assert_eq!(buffer.bytes().len(), len);
            assert!(len < HUGE_PAGE || buffer.bytes().as_ptr().addr().is_multiple_of(HUGE_PAGE));
            assert!(buffer.bytes().iter().step_by(997).all(|&byte| byte == 0));
            buffer.as_mut_slice::<f32>().fill(1.5);
            assert!(buffer.as_slice::<f32>().iter().step_by(997).all(|&value| value == 1.5));
        }
        assert!(HugeBuffer::zeroed(usize::MAX).is_err());
    }
}
