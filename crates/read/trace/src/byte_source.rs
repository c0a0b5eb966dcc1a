//! Sources of bytes: a complete slice, or a stream through a window.

use crate::complete_bytes::CompleteBytes;
use crate::progress::Progress;
use crate::repairs::Note;
use crate::sliding_buffer::{BLOCK, Sliding};
use std::io::{self, Read};

/// Buffered bytes, which may be followed by more.
pub(crate) trait Feed {
    /// Returns the buffered bytes.
    fn bytes(&self) -> &[u8];
    /// Returns the offset of the first buffered byte in the whole.
    fn base(&self) -> u64;
    /// Whether no bytes follow the buffered ones.
    fn ended(&self) -> bool;
    /// Drops the first `used` bytes and reads more after the rest. Returns `false` if there are
    /// none; the buffered bytes then stay unchanged.
    fn more(&mut self, used: usize) -> io::Result<bool>;
    /// Returns the damage that ended the bytes early, and its offset.
    fn damage(&self) -> Option<(Note, u64)> {
        None
    }
    /// Reports that the reader has reached `at` in the buffered bytes.
    fn reached(&mut self, _at: usize) {}
    /// Returns the bytes, if all of them are buffered.
    fn whole(&self) -> Option<CompleteBytes<'_>> {
        None
    }
    /// Continues at an offset of the whole, if all of it is available.
    fn go_to(&mut self, _offset: u64) {}
}

/// Source whose bytes are all in memory.
pub(crate) struct Slice<'a> {
    bytes: &'a [u8],
    progress: &'a Progress<'a>,
    reached: usize,
}

impl<'a> Slice<'a> {
    pub(crate) fn new(bytes: &'a [u8], progress: &'a Progress<'a>) -> Slice<'a> {
        Slice { bytes, progress, reached: 0 }
    }
}

impl Feed for Slice<'_> {
    fn bytes(&self) -> &[u8] {
        self.bytes
    }

    fn base(&self) -> u64 {
        0
    }

    fn ended(&self) -> bool {
        true
    }

    fn more(&mut self, _used: usize) -> io::Result<bool> {
        Ok(false)
    }

    fn reached(&mut self, at: usize) {
        self.progress.advance(at.saturating_sub(self.reached) as u64);
        self.reached = self.reached.max(at);
    }

    fn whole(&self) -> Option<CompleteBytes<'_>> {
        Some(CompleteBytes::from_bytes(self.bytes, self.progress))
    }
}

/// Window over a stream. A stream that fails after its beginning ends there, with a note.
pub(crate) struct Stream<R> {
    reader: R,
    held: Sliding,
    damage: Option<(Note, u64)>,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(reader: R) -> Stream<R> {
        Stream::with_block(reader, BLOCK)
    }

    /// Returns a stream that is read `block` bytes at a time.
    pub(crate) fn with_block(reader: R, block: usize) -> Stream<R> {
        Stream { reader, held: Sliding::new(0, block), damage: None }
    }
}

impl<R: Read> Feed for Stream<R> {
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
        let (reader, damage) = (&mut self.reader, &mut self.damage);
        self.held.more(used, |buffer, end| match reader.read(buffer) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted && end > 0 => {
                let cut = error.kind() == io::ErrorKind::UnexpectedEof;
                *damage = Some((if cut { Note::Truncated } else { Note::DamagedCompression }, end));
                Ok(0)
            }
            read => read,
        })?;
        Ok(true)
    }

    fn damage(&self) -> Option<(Note, u64)> {
        self.damage
    }
}
