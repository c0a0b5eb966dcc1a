//! A buffer that slides over bytes. It grows to the longest single value, no further.

use std::io;

/// Bytes that are read at a time, and the least length of a buffer.
pub(crate) const BLOCK: usize = 1 << 20;
/// The longest single value that a buffer may hold.
const LONGEST: usize = 1 << 26;

/// The part of some bytes that is at hand.
pub(crate) struct Sliding {
    /// Only the first `filled` bytes count.
    buffer: Vec<u8>,
    filled: usize,
    base: u64,
    block: usize,
    /// Whether nothing comes after the bytes at hand.
    pub(crate) ended: bool,
}

impl Sliding {
    /// Nothing at hand yet, at an offset of the whole; `block` bytes are fetched at a time.
    pub(crate) fn new(base: u64, block: usize) -> Sliding {
        Sliding { buffer: Vec::new(), filled: 0, base, block, ended: false }
    }

    /// The bytes at hand.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// The offset of the first of them in the whole.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The offset of the first byte behind them.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// Lets go of all bytes, and goes on at an offset.
    pub(crate) fn go_to(&mut self, offset: u64) {
        (self.filled, self.base) = (0, offset);
    }

    /// Lets go of the first `used` bytes and fetches more behind the rest: `read` takes a place for them and their offset, and
    /// gives how many it read, 0 at the end. What is interrupted is tried again.
    ///
    /// # Errors
    /// Those of `read`; a single value that is longer than any may be.
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
