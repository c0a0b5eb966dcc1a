//! A window over bytes that several readers take from at once.

use crate::feed::{BLOCK, Feed, LONGEST};
use crate::whole::Whole;
use std::io;

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

impl<'w> Window<'w> {
    /// Of a whole, from an offset on.
    pub(crate) fn new(whole: Whole<'w>, from: u64) -> Window<'w> {
        Window::of_blocks(whole, from, BLOCK)
    }

    /// The same, fetched `block` bytes at a time.
    pub(crate) fn of_blocks(whole: Whole<'w>, from: u64, block: usize) -> Window<'w> {
        Window { whole, buffer: Vec::new(), filled: 0, base: from, block, ended: from >= whole.length() }
    }

    fn fill(&mut self) -> io::Result<()> {
        while self.filled < self.buffer.len() && !self.ended {
            let at = self.base + self.filled as u64;
            match self.whole.read_at(&mut self.buffer[self.filled..], at) {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    self.filled += read;
                    self.whole.progress().advance(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.ended |= self.base + self.filled as u64 >= self.whole.length();
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
        self.ended = offset >= self.whole.length();
    }
}
