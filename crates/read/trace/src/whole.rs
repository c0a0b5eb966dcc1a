//! Bytes that several readers can take from at once, each from a place of its own.

use crate::feed::Feed;
use crate::progress::Progress;
use std::fs::File;
use std::io;

/// Bytes that are read at a time, and the least length of a window.
const BLOCK: usize = 1 << 20;
/// The longest single value that a window may hold.
const LONGEST: usize = 1 << 26;

/// Bytes that are all there, in memory or on disk.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'w> {
    bytes: Bytes<'w>,
    length: u64,
    progress: &'w Progress<'w>,
}

#[derive(Clone, Copy)]
enum Bytes<'w> {
    Memory(&'w [u8]),
    Disk(&'w File),
}

impl<'w> Whole<'w> {
    /// Bytes in memory.
    pub(crate) fn from_bytes(bytes: &'w [u8], progress: &'w Progress<'w>) -> Whole<'w> {
        Whole { bytes: Bytes::Memory(bytes), length: bytes.len() as u64, progress }
    }

    /// The bytes of an uncompressed regular file, up to its present length. `None` of any other file.
    ///
    /// Bytes that another process appends meanwhile are left out.
    ///
    /// The file is read and not mapped: should another process cut a mapped file short, the system ends this one with a
    /// signal. Read, it is merely shorter, which reading has to expect of any file.
    pub(crate) fn from_file(file: &'w File, progress: &'w Progress<'w>) -> io::Result<Option<Whole<'w>>> {
        let metadata = file.metadata()?;
        let length = metadata.len();
        let regular = metadata.is_file() && length > 0;
        Ok(regular.then_some(Whole { bytes: Bytes::Disk(file), length, progress }))
    }

    /// The number of bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// A reader that begins at an offset.
    pub(crate) fn window(self, from: u64) -> Window<'w> {
        self.window_of(from, BLOCK)
    }

    /// The same, fetched `block` bytes at a time.
    pub(crate) fn window_of(self, from: u64, block: usize) -> Window<'w> {
        Window { whole: self, buffer: Vec::new(), filled: 0, base: from, block, ended: from >= self.length }
    }

    /// Reads some bytes from an offset on; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
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

/// A window over bytes that are all there. It grows to the longest single value, no further.
pub(crate) struct Window<'w> {
    whole: Whole<'w>,
    /// Only the first `filled` bytes count.
    buffer: Vec<u8>,
    filled: usize,
    base: u64,
    block: usize,
    ended: bool,
}

impl Window<'_> {
    fn fill(&mut self) -> io::Result<()> {
        while self.filled < self.buffer.len() && !self.ended {
            let at = self.base + self.filled as u64;
            match self.whole.read_at(&mut self.buffer[self.filled..], at) {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    self.filled += read;
                    self.whole.progress.advance(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.ended |= self.base + self.filled as u64 >= self.whole.length;
        Ok(())
    }
}

impl Feed for Window<'_> {
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    fn base(&self) -> u64 {
        self.base
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn more(&mut self, used: usize) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.copy_within(used..self.filled, 0);
        self.filled -= used;
        self.base += used as u64;
        if self.filled > LONGEST {
            return Err(io::Error::other("a single value is longer than 64 MiB"));
        }
        let room = self.block.max(self.filled);
        self.buffer.resize(self.buffer.len().max(self.filled + room), 0);
        self.fill()?;
        Ok(true)
    }

    fn whole(&self) -> Option<Whole<'_>> {
        Some(self.whole)
    }

    fn go_to(&mut self, offset: u64) {
        (self.filled, self.base) = (0, offset);
        self.ended = offset >= self.whole.length;
    }
}
