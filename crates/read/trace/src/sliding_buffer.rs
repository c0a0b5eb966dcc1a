//! Sliding buffer over bytes. It grows to the longest single value, but no further.

use std::io;

/// Number of bytes read at a time, and minimum length of a buffer.
pub(crate) const BLOCK: usize = 1 << 20;
/// Maximum length of a single value in a buffer.
const LONGEST: usize = 1 << 26;

/// Buffered part of a sequence of bytes.
pub(crate) struct Sliding {
    /// Only the first `filled` bytes are valid.
    buffer: Vec<u8>,
    filled: usize,
    base: u64,
    block: usize,
    /// Whether no bytes follow the buffered ones.
    pub(crate) ended: bool,
}

impl Sliding {
    /// Returns an empty buffer at an offset of the whole; `block` bytes are read at a time.
    pub(crate) fn new(base: u64, block: usize) -> Sliding {
        Sliding { buffer: Vec::new(), filled: 0, base, block, ended: false }
    }

    /// Returns the buffered bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Returns the offset of the first buffered byte in the whole.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Returns the offset after the last buffered byte.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// Drops all bytes, and continues at an offset.
    pub(crate) fn go_to(&mut self, offset: u64) {
        (self.filled, self.base) = (0, offset);
    }

    /// Drops the first `used` bytes and reads more after the rest: `read` gets the free part of the buffer and its offset, and
    /// returns the number of bytes read, 0 at the end. Interrupted reads are retried.
    ///
    /// # Errors
    /// Errors of `read`; an error if a single value is longer than the maximum.
    pub(crate) fn more(
        &mut self,
        used: usize,
        mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.buffer.copy_within(used..self.filled, 0);
        self.filled -= used;
        self.base += used as u64;
        if self.filled > LONGEST {
            return Err(io::Error::other("a single value is longer than 64 MiB"));
        }
        let room = self.block.max(self.filled);
        self.buffer.resize(self.buffer.len().max(self.filled + room), 0);
        while self.filled < self.buffer.len() && !self.ended {
            let end = self.end();
            match read(&mut self.buffer[self.filled..], end) {
                Ok(0) => self.ended = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
