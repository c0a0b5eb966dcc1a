//! Reading of a checkpoint.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::digest::Hasher;
use super::manifest::{self, Manifest};
use super::open::{Placed, damaged, open_shard, place};
use super::pread::read_exact_at;
use super::{CheckpointError, Entry, Model, Number, Source, State, Tensor};

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;

/// An opened checkpoint. Tensors and rows are read when they are requested, from any thread.
#[derive(Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    manifest: Manifest,
    files: Vec<(PathBuf, File)>,
    tensors: HashMap<String, Placed>,
}

impl Checkpoint {
    /// Opens a checkpoint and verifies all of it: description, shards' headers, lengths and hashes.
    ///
    /// # Errors
    ///
    /// A file is missing, or differs from its description; the format is of a later version.
    pub fn open(folder: &Path) -> Result<Self, CheckpointError> {
        let checkpoint = Checkpoint::open_unhashed(folder)?;
        checkpoint.verify()?;
        Ok(checkpoint)
    }

    /// Opens a checkpoint and verifies its description, and the shards' lengths and headers, but reads no tensor.
    ///
    /// # Errors
    ///
    /// As for [`Checkpoint::open`], apart from hashes.
    pub fn open_unhashed(folder: &Path) -> Result<Self, CheckpointError> {
        let path = folder.join(manifest::FILE);
        let text = match fs::read(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(CheckpointError::io("read", &path)(error))
            }
            Err(_) => {
                Err(CheckpointError::Manifest { path: path.clone(), reason: "it is missing".to_owned() })
            }
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| CheckpointError::Manifest {
                path: path.clone(),
                reason: "it is not UTF-8".to_owned(),
            }),
        }?;
        let manifest = Manifest::from_text(&path, &text)?;
        let opened = manifest.shards.iter().map(|shard| open_shard(folder, &path, shard));
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        let mut tensors = HashMap::new();
        for (index, tensor) in manifest.tensors.iter().enumerate() {
            let placed = place(index, tensor, &opened, &path)?;
            if tensors.insert(tensor.name.clone(), placed).is_some() {
                let reason = format!("tensor {} occurs twice", tensor.name);
                return Err(CheckpointError::Manifest { path, reason });
            }
        }
        let files = opened.into_iter().map(|shard| (shard.path, shard.file)).collect();
        Ok(Checkpoint { folder: folder.to_path_buf(), manifest, files, tensors })
    }

    /// Compares every shard with its hash, in parallel.
    ///
    /// # Errors
    ///
    /// A shard cannot be read, or has another hash.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        self.files.par_iter().zip(&self.manifest.shards).try_for_each(|((path, file), shard)| {
            let mut hasher = Hasher::default();
            let mut buffer = vec![0; BUFFER];
            let mut at = 0;
            while at < shard.bytes {
                let part = &mut buffer[..(shard.bytes - at).min(BUFFER as u64) as usize];
                read_exact_at(file, part, at).map_err(CheckpointError::io("read", path))?;
                hasher.update(part);
                at += part.len() as u64;
            }
            match hasher.digest() == shard.hash {
                true => Ok(()),
                false => Err(damaged(path, format!("its hash is {}, not {}", hasher.digest(), shard.hash))),
            }
        })
    }

    /// The checkpoint's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// State of the run.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.manifest.state
    }

    /// The described model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.manifest.model
    }

    /// All tensors, in the order in which they were written.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.manifest.tensors
    }

    /// A tensor's type and shape.
    ///
    /// # Errors
    ///
    /// No tensor has the name.
    pub fn tensor(&self, name: &str) -> Result<&Tensor, CheckpointError> {
        self.placed(name).map(|placed| &self.manifest.tensors[placed.index])
    }

    /// Reads all numbers of a tensor.
    ///
    /// # Errors
    ///
    /// No tensor has the name; it has another type; a shard cannot be read.
    pub fn read<T: Number>(&self, name: &str) -> Result<Vec<T>, CheckpointError> {
        self.read_rows(name, 0..self.tensor(name)?.rows())
    }

    /// Reads consecutive rows of a tensor, and nothing else. A tensor without dimensions has one row.
    ///
    /// # Errors
    ///
    /// As for [`Checkpoint::read`]; rows outside of the tensor.
    pub fn read_rows<T: Number>(&self, name: &str, rows: Range<u64>) -> Result<Vec<T>, CheckpointError> {
        let bytes = self.bytes_of::<T>(name, &rows)?;
        let mut numbers = vec![T::default(); (bytes.end - bytes.start) as usize / size_of::<T>()];
        self.read_numbers(name, bytes.start, &mut numbers)?;
        Ok(numbers)
    }

    /// Reads consecutive rows of a tensor into memory that exists.
    ///
    /// # Errors
    ///
    /// As for [`Checkpoint::read_rows`]; the buffer has another number of elements than the rows.
    pub fn read_rows_into<T: Number>(
        &self,
        name: &str,
        rows: Range<u64>,
        numbers: &mut [T],
    ) -> Result<(), CheckpointError> {
        let bytes = self.bytes_of::<T>(name, &rows)?;
        let (needed, given) = ((bytes.end - bytes.start) / size_of::<T>() as u64, numbers.len() as u64);
        match needed == given {
            true => self.read_numbers(name, bytes.start, numbers),
            false => Err(CheckpointError::Buffer { name: name.to_owned(), needed, given }),
        }
    }

    /// Bytes of a tensor's rows, if it has that type and those rows.
    fn bytes_of<T: Number>(&self, name: &str, rows: &Range<u64>) -> Result<Range<u64>, CheckpointError> {
        let tensor = self.tensor(name)?;
        if tensor.dtype != T::DTYPE {
            let (name, stored, requested) = (name.to_owned(), tensor.dtype, T::DTYPE);
            return Err(CheckpointError::Type { name, stored, requested });
        }
        if rows.start > rows.end || rows.end > tensor.rows() {
            let (name, count) = (name.to_owned(), tensor.rows());
            return Err(CheckpointError::Range {
                name,
                unit: "rows",
                first: rows.start,
                last: rows.end,
                count,
            });
        }
        let row_bytes = self.placed(name)?.row_bytes;
        Ok(rows.start * row_bytes..rows.end * row_bytes)
    }

    fn read_numbers<T: Number>(
        &self,
        name: &str,
        start: u64,
        numbers: &mut [T],
    ) -> Result<(), CheckpointError> {
        let parts = numbers.par_chunks_mut(BUFFER / size_of::<T>()).enumerate();
        parts.try_for_each_init(
            || vec![0; BUFFER],
            |buffer, (part, numbers)| {
                let buffer = &mut buffer[..size_of_val(numbers)];
                self.read_bytes(name, start + (part * BUFFER) as u64, buffer)?;
                T::read(buffer, numbers);
                Ok(())
            },
        )
    }

    /// Fills a buffer with the little-endian bytes of a tensor from position `start`.
    ///
    /// # Errors
    ///
    /// No tensor has the name; bytes outside of it; a shard cannot be read.
    pub fn read_bytes(&self, name: &str, start: u64, buffer: &mut [u8]) -> Result<(), CheckpointError> {
        let placed = self.placed(name)?;
        let (last, count) =
            (start.saturating_add(buffer.len() as u64), placed.pieces.last().map_or(0, |p| p.bytes.end));
        if last > count {
            return Err(CheckpointError::Range {
                name: name.to_owned(),
                unit: "bytes",
                first: start,
                last,
                count,
            });
        }
        let first = placed.pieces.partition_point(|piece| piece.bytes.end <= start);
        for piece in &placed.pieces[first..] {
            let (begin, end) = (piece.bytes.start.max(start), piece.bytes.end.min(last));
            if begin >= end {
                break;
            }
            let (path, file) = &self.files[piece.file];
            let part = &mut buffer[(begin - start) as usize..(end - start) as usize];
            let at = piece.at + (begin - piece.bytes.start);
            read_exact_at(file, part, at).map_err(CheckpointError::io("read", path))?;
        }
        Ok(())
    }

    /// A tensor as the entry of another checkpoint or file.
    ///
    /// # Errors
    ///
    /// No tensor has the name.
    pub fn entry(&self, name: &str) -> Result<Entry<'_>, CheckpointError> {
        let tensor = self.tensor(name)?;
        let source = Stored { checkpoint: self, name: name.to_owned() };
        Ok(Entry::new(name, tensor.dtype, &tensor.shape, source))
    }

    fn placed(&self, name: &str) -> Result<&Placed, CheckpointError> {
        let missing = || CheckpointError::NoTensor { folder: self.folder.clone(), name: name.to_owned() };
        self.tensors.get(name).ok_or_else(missing)
    }
}

struct Stored<'a> {
    checkpoint: &'a Checkpoint,
    name: String,
}

impl Source for Stored<'_> {
    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.checkpoint.read_bytes(&self.name, start, bytes).map_err(io::Error::other)
    }
}
