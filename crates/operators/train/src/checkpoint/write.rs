//! Writing of a checkpoint into a folder.

use std::io::Write;
use std::path::Path;

use rayon::prelude::*;

use super::digest::Hasher;
use super::disk::{Disk, DurableFile};
use super::layout::{self, Rows};
use super::manifest::{self, Manifest};
use super::{CheckpointError, Entry, Shard, State, Tensor, header};

/// Bytes that are read, hashed and written at once: they stay in a core's cache.
const BUFFER: usize = 1 << 18;

/// Shards of the tensors of a checkpoint, not written yet.
pub(super) struct Plan {
    tensors: Vec<Tensor>,
    shards: Vec<Vec<Rows>>,
}

impl Plan {
    /// Divides the tensors into shards of at most `limit` bytes.
    pub fn new(entries: &[Entry<'_>], limit: u64) -> Result<Self, CheckpointError> {
        let uncut = |entry: &Entry<'_>| layout::uncut(entry.name(), entry.dtype(), entry.shape());
        let mut tensors: Vec<Tensor> = entries.iter().map(uncut).collect();
        let shards = layout::divide(&mut tensors, limit)?;
        Ok(Plan { tensors, shards })
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().filter_map(Tensor::bytes).sum()
    }

    /// Writes shards and description into an empty folder, and makes them permanent.
    pub fn write(
        self,
        disk: &dyn Disk,
        folder: &Path,
        state: &State,
        model: &str,
        entries: &[Entry<'_>],
    ) -> Result<(), CheckpointError> {
        let shards = self.shards.par_iter().enumerate();
        let shards = shards.map(|(index, rows)| self.write_shard(disk, folder, index, rows, entries));
        let shards = shards.collect::<Result<Vec<Shard>, _>>()?;
        let path = folder.join(manifest::FILE);
        let text = Manifest::new(state.clone(), model, shards, self.tensors).to_text(&path)?;
        let mut file = disk.create_file(&path).map_err(CheckpointError::io("create", &path))?;
        file.write_all(text.as_bytes()).map_err(CheckpointError::io("write", &path))?;
        file.sync().map_err(CheckpointError::io("flush", &path))?;
        disk.sync_folder(folder).map_err(CheckpointError::io("flush", folder))
    }

    fn write_shard(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        index: usize,
        rows: &[Rows],
        entries: &[Entry<'_>],
    ) -> Result<Shard, CheckpointError> {
        let file = format!("shard-{index:05}.safetensors");
        let path = folder.join(&file);
        let parts: Vec<_> =
            rows.iter().map(|rows| layout::part(&self.tensors[rows.tensor], &rows.rows)).collect();
        let invalid = |error| CheckpointError::Damaged { path: path.clone(), reason: format!("{error}") };
        let header = header::encode(&parts).map_err(invalid)?;
        let created = disk.create_file(&path).map_err(CheckpointError::io("create", &path))?;
        let mut hashed = Hashed { file: created, path: &path, hasher: Hasher::default(), bytes: 0 };
        hashed.write(&header)?;
        let mut buffer = vec![0; BUFFER];
        for (rows, part) in rows.iter().zip(&parts) {
            let row = part.bytes.checked_div(rows.rows.end - rows.rows.start).unwrap_or(0);
            let (mut at, end) = (rows.rows.start * row, rows.rows.start * row + part.bytes);
            while at < end {
                let buffer = &mut buffer[..(end - at).min(BUFFER as u64) as usize];
                let entry = &entries[rows.tensor];
                entry.source().read(at, buffer).map_err(CheckpointError::io("read a tensor for", &path))?;
                hashed.write(buffer)?;
                at += buffer.len() as u64;
            }
        }
        hashed.file.sync().map_err(CheckpointError::io("flush", &path))?;
        Ok(Shard { file, bytes: hashed.bytes, hash: hashed.hasher.digest() })
    }
}

/// A file whose bytes are hashed and counted.
struct Hashed<'a> {
    file: Box<dyn DurableFile>,
    path: &'a Path,
    hasher: Hasher,
    bytes: u64,
}

impl Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(CheckpointError::io("write", self.path))
    }
}
