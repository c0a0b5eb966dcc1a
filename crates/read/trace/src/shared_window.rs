//! Window over bytes that several readers share.

use crate::byte_source::Feed;
use crate::complete_bytes::CompleteBytes;
use crate::sliding_buffer::{BLOCK, Sliding};
use std::io;

/// Window over complete bytes.
pub(crate) struct Window<'w> {
    whole: CompleteBytes<'w>,
    held: Sliding,
}

impl<'w> Window<'w> {
    /// Returns a window from an offset of a whole on.
    pub(crate) fn new(whole: CompleteBytes<'w>, from: u64) -> Window<'w> {
        Window::with_block(whole, from, BLOCK)
    }

    /// Returns a window that is read `block` bytes at a time.
    pub(crate) fn with_block(whole: CompleteBytes<'w>, from: u64, block: usize) -> Window<'w> {
        let mut held = Sliding::new(from, block);
        held.ended = from >= whole.length();
        Window { whole, held }
    }
}

impl Feed for Window<'_> {
    fn bytes(&self) -> &[u8] {
        self.held.bytes()
    }

    fn base(&self) -> u64 {
        self.held.base()
    }

    fn ended(&self) -> bool {
        self.held.ended
    }

    fn more(&mut self, used: usize) -> io::Result<bool> {
        if self.held.ended {
            return Ok(false);
        }
        let whole = self.whole;
        self.held.more(used, |buffer, at| {
            let read = whole.read_at(buffer, at)?;
            whole.progress().advance(read as u64);
            Ok(read)
        })?;
        self.held.ended |= self.held.end() >= whole.length();
        Ok(true)
    }

    fn whole(&self) -> Option<CompleteBytes<'_>> {
        Some(self.whole)
    }

    fn go_to(&mut self, offset: u64) {
        self.held.go_to(offset);
        self.held.ended = offset >= self.whole.length();
    }
}
