//! Files mapped into memory: the crate's only unsafe code.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use memmap2::{Advice, Mmap};

use crate::Error;

/// A whole file, mapped read-only.
#[derive(Debug)]
pub(crate) struct Map(Mmap);

impl Map {
    /// Maps a file, and advises the system that it will be read in order.
    pub(crate) fn open(path: &Path) -> Result<Map, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        // SAFETY: the mapping is read-only, and the bytes are only ever read as `u8`, for which every bit pattern
        // is valid. A dataset's files get their name when they are complete (`Writer` renames its folder whole) and
        // are never written again by this crate. The documentation of the crate requires that other programs leave
        // the files of an open dataset unchanged.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io(path))?;
        #[cfg(unix)]
        {
            // Advice alone: without it the file is read more slowly, but not differently.
            let _ = map.advise(Advice::Sequential);
        }
        Ok(Map(map))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
