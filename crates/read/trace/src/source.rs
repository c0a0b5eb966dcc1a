//! One file, plain or compressed, told apart by its first bytes.

use crate::document::{self, Document, Plan};
use crate::error::Error;
use crate::feed::{Slice, Stream};
use crate::mmap;
use crate::progress::Progress;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// How much is read from the disk at a time.
const BUFFER: usize = 256 << 10;

/// A file that says how far it has been read.
struct Watched<'p> {
    file: File,
    progress: &'p Progress<'p>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}

/// Reads one trace file; `None` when it is of a kind that is not wanted.
pub(crate) fn read(plan: Plan<'_>, progress: &Progress<'_>) -> Result<Option<Document>, Error> {
    let failed = Error::io(plan.path);
    let file = File::open(plan.path).map_err(&failed)?;
    if is_lfs_pointer(&file) {
        return Err(Error::LfsPointer { path: plan.path.to_owned() });
    }
    if !is_packed(&file)
        && let Ok(map) = mmap::map(&file)
    {
        return document::read(&mut Slice::new(&map, progress), plan);
    }
    let reader = unpack(Watched { file, progress }).map_err(&failed)?;
    document::read(&mut Stream::new(reader), plan)
}

/// The decompressed bytes of a file.
pub(crate) fn bytes<'p>(path: &Path, progress: &'p Progress<'p>) -> io::Result<Box<dyn Read + 'p>> {
    unpack(Watched { file: File::open(path)?, progress })
}

/// The decompressed bytes of a stream.
pub(crate) fn unpack<'r>(reader: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut reader = BufReader::with_capacity(BUFFER, reader);
    Ok(match packing(reader.fill_buf()?) {
        Packing::Plain => Box::new(reader),
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
    })
}

/// How bytes are packed.
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

fn packing(head: &[u8]) -> Packing {
    match head {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
        _ => Packing::Plain,
    }
}

/// What Git LFS leaves in the place of a file begins so.
const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// Whether a file is what Git LFS leaves in its place; its position stays where it is.
pub(crate) fn is_lfs_pointer(file: &File) -> bool {
    let mut head = [0; LFS_POINTER.len()];
    #[cfg(unix)]
    let read = std::os::unix::fs::FileExt::read_exact_at(file, &mut head, 0);
    #[cfg(not(unix))]
    let read: io::Result<()> = Err(io::ErrorKind::Unsupported.into());
    read.is_ok() && head == LFS_POINTER
}

/// Whether a file begins like compressed data; its position stays where it is.
fn is_packed(file: &File) -> bool {
    let mut head = [0; 4];
    #[cfg(unix)]
    let read = std::os::unix::fs::FileExt::read_at(file, &mut head, 0);
    #[cfg(not(unix))]
    let read: io::Result<usize> = Err(io::ErrorKind::Unsupported.into());
    read.is_err() || !matches!(packing(&head), Packing::Plain)
}
