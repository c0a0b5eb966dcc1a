//! Reads at a position of a file, without a cursor.

use std::fs::File;
use std::io;

/// Fills a buffer from position `at`.
#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

/// Fills a buffer from position `at`.
#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (buffer, at) = (&mut buffer[read..], at + read as u64),
        }
    }
    Ok(())
}
