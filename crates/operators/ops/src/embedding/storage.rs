//! Storage of a table's bytes.

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapMut, MmapOptions};

use super::HugeBuffer;

/// The bytes of a table.
#[derive(Debug)]
pub(super) enum Storage<'a> {
    Borrowed(&'a [u8]),
    BorrowedMut(&'a mut [u8]),
    Owned(HugeBuffer),
    Mapped(Mmap),
    MappedMut(MmapMut),
}

impl Storage<'_> {
    /// `len` bytes of a file from `offset`.
    ///
    /// # Safety
    ///
    /// Nothing else writes or shortens the file while it is mapped.
    pub(super) unsafe fn map(file: &File, offset: u64, len: usize, write: bool) -> io::Result<Self> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| file.metadata().is_ok_and(|data| data.len() < end)) {
            let what = format!("the file has fewer than {len} bytes after the first {offset}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        let mut options = MmapOptions::new();
        options.offset(offset).len(len);
        // Rows are read at random: read-ahead would fetch pages that are not needed.
        if write {
            // SAFETY: nothing else changes the file, by the caller's promise.
            let map = unsafe { options.map_mut(file) }?;
            #[cfg(unix)]
            map.advise(memmap2::Advice::Random)?;
            Ok(Storage::MappedMut(map))
        } else {
            // SAFETY: as above.
            let map = unsafe { options.map(file) }?;
            #[cfg(unix)]
            map.advise(memmap2::Advice::Random)?;
            Ok(Storage::Mapped(map))
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Borrowed(bytes) => bytes,
            Storage::BorrowedMut(bytes) => bytes,
            Storage::Owned(buffer) => buffer.bytes(),
            Storage::Mapped(map) => map,
            Storage::MappedMut(map) => map,
        }
    }

    pub(super) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Storage::Borrowed(_) | Storage::Mapped(_) => None,
            Storage::BorrowedMut(bytes) => Some(bytes),
            Storage::Owned(buffer) => Some(buffer.bytes_mut()),
            Storage::MappedMut(map) => Some(map),
        }
    }
}
