//! Where bytes come from: a slice that is all there, or a stream through a window.

use crate::notes::Note;
use crate::progress::Progress;
use crate::sliding::{BLOCK, Sliding};
use crate::whole::Whole;
use std::io::{self, Read};

/// Bytes at hand, with more to come.
pub(crate) trait Feed {
    /// The bytes at hand.
    fn bytes(&self) -> &[u8];
    /// The offset of the first of them in the whole.
    fn base(&self) -> u64;
    /// Whether nothing comes after them.
    fn ended(&self) -> bool;
    /// Lets go of the first `used` bytes and fetches more behind the rest. `false` when there are
    /// none; the bytes at hand then stay as they are.
    fn more(&mut self, used: usize) -> io::Result<bool>;
    /// Trouble that ended the bytes early, and where.
    fn damage(&self) -> Option<(Note, u64)> {
        None
    }
    /// The reader has come as far as `at` among the bytes at hand.
    fn reached(&mut self, _at: usize) {}
    /// The bytes, when they are all there.
    fn whole(&self) -> Option<Whole<'_>> {
        None
    }
    /// Goes on at an offset of the whole, where all of it is there.
    fn go_to(&mut self, _offset: u64) {}
}

/// Bytes that are all there.
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

    fn whole(&self) -> Option<Whole<'_>> {
        Some(Whole::from_bytes(self.bytes, self.progress))
    }
}

/// A window over a stream. A stream that breaks after its beginning ends there, with a note.
pub(crate) struct Stream<R> {
    reader: R,
    held: Sliding,
    damage: Option<(Note, u64)>,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(reader: R) -> Stream<R> {
        Stream::with_block(reader, BLOCK)
    }

    /// A stream that is fetched `block` bytes at a time.
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
