//! Bytes that several readers can read concurrently, each at its own position.

use crate::progress::Progress;
use std::fs::File;
use std::io;

/// Complete bytes, in memory or on disk.
#[derive(Clone, Copy)]
pub(crate) struct CompleteBytes<'w> {
    bytes: Bytes<'w>,
    length: u64,
    progress: &'w Progress<'w>,
}

#[derive(Clone, Copy)]
enum Bytes<'w> {
    Memory(&'w [u8]),
    Disk(&'w File),
}

impl<'w> CompleteBytes<'w> {
    /// Returns bytes in memory.
    pub(crate) fn from_bytes(bytes: &'w [u8], progress: &'w Progress<'w>) -> CompleteBytes<'w> {
        CompleteBytes { bytes: Bytes::Memory(bytes), length: bytes.len() as u64, progress }
    }

    /// Returns the bytes of an uncompressed regular file, up to its present length. `None` for any other file.
    ///
    /// Bytes that another process appends meanwhile are ignored.
    ///
    /// The file is read and not mapped: if another process truncated a mapped file, the system would end this process with a
    /// signal. With reads it is merely shorter, which has to be expected of any file.
    pub(crate) fn from_file(
        file: &'w File,
        progress: &'w Progress<'w>,
    ) -> io::Result<Option<CompleteBytes<'w>>> {
        let metadata = file.metadata()?;
        let length = metadata.len();
        let regular = metadata.is_file() && length > 0;
        Ok(regular.then_some(CompleteBytes { bytes: Bytes::Disk(file), length, progress }))
    }

    /// Returns the number of bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the progress that its readers report.
    pub(crate) fn progress(&self) -> &'w Progress<'w> {
        self.progress
    }

    /// Reads bytes from an offset on; returns 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let buffer = &mut buffer[..count];
        match self.bytes {
            Bytes::Memory(bytes) => {
                let at = at as usize;
                buffer.copy_from_slice(&bytes[at..at + count]);
                Ok(count)
            }
            Bytes::Disk(file) => read_file_at(file, buffer, at),
        }
    }
}

#[cfg(unix)]
fn read_file_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_file_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}
