//! Where bytes come from: a slice that is all there, or a stream through a window.

use crate::notes::Note;
use crate::progress::Progress;
use crate::whole::Whole;
use std::io::{self, Read};

/// How much is read at a time, and the least a window holds.
pub(crate) const BLOCK: usize = 1 << 20;
/// The longest single value that a window may hold.
pub(crate) const LONGEST: usize = 1 << 26;

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

/// A window over a stream. It grows to the longest single value, no further.
pub(crate) struct Stream<R> {
    reader: R,
    /// Only the first `filled` bytes count.
    window: Vec<u8>,
    filled: usize,
    base: u64,
    block: usize,
    ended: bool,
    damage: Option<(Note, u64)>,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(reader: R) -> Stream<R> {
        Stream::with_block(reader, BLOCK)
    }

    /// A stream that is fetched `block` bytes at a time.
    pub(crate) fn with_block(reader: R, block: usize) -> Stream<R> {
        let window = Vec::new();
        Stream { reader, window, filled: 0, base: 0, block, ended: false, damage: None }
    }

    /// Fills the window; a stream that breaks after its beginning ends there, with a note.
    fn fill(&mut self) -> io::Result<()> {
        while self.filled < self.window.len() && !self.ended {
            match self.reader.read(&mut self.window[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let end = self.base + self.filled as u64;
                    if end == 0 {
                        return Err(error);
                    }
                    let cut = error.kind() == io::ErrorKind::UnexpectedEof;
                    let note = if cut { Note::Truncated } else { Note::DamagedCompression };
                    self.damage = Some((note, end));
                    self.ended = true;
                }
            }
        }
        Ok(())
    }
}

impl<R: Read> Feed for Stream<R> {
    fn bytes(&self) -> &[u8] {
        &self.window[..self.filled]
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
        self.window.copy_within(used..self.filled, 0);
        self.filled -= used;
        self.base += used as u64;
        if self.filled > LONGEST {
            return Err(io::Error::other("a single value is longer than 64 MiB"));
        }
        let room = self.block.max(self.filled);
        self.window.resize(self.window.len().max(self.filled + room), 0);
        self.fill()?;
        Ok(true)
    }

    fn damage(&self) -> Option<(Note, u64)> {
        self.damage
    }
}
