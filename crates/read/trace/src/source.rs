//! Files, plain or compressed, distinguished by their first bytes.

use crate::byte_source::Stream;
use crate::complete_bytes::CompleteBytes;
use crate::document::{self, Document, Plan};
use crate::error::Error;
use crate::kineto::Trace;
use crate::nsight;
use crate::progress::Progress;
use crate::shared_window::Window;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};

/// Number of bytes read from the disk at a time.
const BUFFER: usize = 256 << 10;

/// File that reports the progress of reading.
struct ProgressReader<'p> {
    file: File,
    progress: &'p Progress<'p>,
}

impl Read for ProgressReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}

/// Reads one trace file; `None` if it is of a kind that `plan` does not include.
pub(crate) fn read(plan: Plan<'_>, progress: &Progress<'_>) -> Result<Option<Document>, Error> {
    let failed = Error::io(plan.path);
    let file = File::open(plan.path).map_err(&failed)?;
    if is_lfs_pointer(&file) {
        return Err(Error::LfsPointer { path: plan.path.to_owned() });
    }
    if let Some(trace) = exported(plan, &file)? {
        return Ok(trace.map(|trace| Document::Kineto(Box::new(trace))));
    }
    if !is_packed(&file)
        && let Some(whole) = CompleteBytes::from_file(&file, progress).map_err(&failed)?
    {
        return document::read(&mut Window::new(whole, 0), plan);
    }
    let reader = unpack(ProgressReader { file, progress }).map_err(&failed)?;
    document::read(&mut Stream::new(reader), plan)
}

/// Returns the trace of an export of Nsight Systems; `None` for any other file. Does not read the trace if `plan` does not include it.
pub(crate) fn exported(plan: Plan<'_>, file: &File) -> Result<Option<Option<Trace>>, Error> {
    let path = plan.path;
    if ["nsys-rep", "qdrep"].iter().any(|report| path.extension().is_some_and(|own| own == *report)) {
        return Err(Error::NotExported { path: path.to_owned() });
    }
    if !head(file, nsight::MAGIC.len()).is_ok_and(|head| head == nsight::MAGIC) {
        return Ok(None);
    }
    Ok(Some(if plan.wanted.kineto { Some(nsight::read(path)?) } else { None }))
}

/// Returns the decompressed bytes of a file.
pub(crate) fn bytes<'p>(file: File, progress: &'p Progress<'p>) -> io::Result<Box<dyn Read + 'p>> {
    unpack(ProgressReader { file, progress })
}

/// Returns the decompressed bytes of a stream.
pub(crate) fn unpack<'r>(reader: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut reader = BufReader::with_capacity(BUFFER, reader);
    Ok(match packing(reader.fill_buf()?) {
        Packing::Plain => Box::new(reader),
        Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
    })
}

/// Compression of bytes.
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

/// First bytes of a Git LFS pointer.
const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// Whether a file is a Git LFS pointer; its position stays unchanged.
pub(crate) fn is_lfs_pointer(file: &File) -> bool {
    head(file, LFS_POINTER.len()).is_ok_and(|head| head == LFS_POINTER)
}

/// Whether a file begins like compressed data; its position stays unchanged.
fn is_packed(file: &File) -> bool {
    !head(file, 4).is_ok_and(|head| matches!(packing(&head), Packing::Plain))
}

/// Returns the first bytes of a file, at most `most`; its position stays unchanged.
fn head(mut file: &File, most: usize) -> io::Result<Vec<u8>> {
    let at = file.stream_position()?;
    file.rewind()?;
    let mut head = Vec::with_capacity(most);
    let read = file.take(most as u64).read_to_end(&mut head);
    file.seek(io::SeekFrom::Start(at))?;
    read.map(|_| head)
}
