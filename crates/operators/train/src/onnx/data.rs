//! The file of external data.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::OnnxError;
use crate::checkpoint::Entry;

/// Alignment of every weight: a page, so that it can be mapped.
const ALIGNMENT: u64 = 4096;
/// Bytes that are read and written at once.
const BUFFER: usize = 1 << 18;

/// A file of weights that is written.
pub(super) struct ExternalData<'a> {
    path: &'a Path,
    file: File,
    length: u64,
}

impl<'a> ExternalData<'a> {
    /// Makes the file.
    pub fn create(path: &'a Path) -> Result<Self, OnnxError> {
        let file = File::create(path).map_err(io_error("create", path))?;
        Ok(ExternalData { path, file, length: 0 })
    }

    /// Writes a weight of a number of bytes; returns its offset.
    pub fn write(&mut self, entry: &Entry<'_>, bytes: u64) -> Result<u64, OnnxError> {
        let offset = self.length.next_multiple_of(ALIGNMENT);
        let mut buffer = vec![0; BUFFER];
        self.append(&buffer[..(offset - self.length) as usize])?;
        let mut at = 0;
        while at < bytes {
            let part = &mut buffer[..(bytes - at).min(BUFFER as u64) as usize];
            entry.source().read(at, part).map_err(io_error("read the weight", Path::new(entry.name())))?;
            self.append(part)?;
            at += part.len() as u64;
        }
        Ok(offset)
    }

    /// Waits until all is on the disk.
    pub fn sync(self) -> Result<(), OnnxError> {
        self.file.sync_all().map_err(io_error("flush", self.path))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), OnnxError> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(io_error("write", self.path))
    }
}

/// An error of the operating system at a path.
pub(super) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OnnxError {
    move |source| OnnxError::Io { action, path: path.to_path_buf(), source }
}
