//! Opening of shards, and the places of tensors in them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::pread::read_exact_at;
use super::{CheckpointError, Shard, Tensor, header, layout};

/// A tensor of the description and the places of its pieces.
#[derive(Debug)]
pub(super) struct Placed {
    pub index: usize,
    pub row_bytes: u64,
    pub pieces: Vec<Place>,
}

/// Bytes of a tensor, and their file and position.
#[derive(Debug)]
pub(super) struct Place {
    pub bytes: Range<u64>,
    pub file: usize,
    pub at: u64,
}

/// An opened shard and its header.
pub(super) struct Opened {
    pub path: PathBuf,
    pub file: File,
    pub parts: header::Parts,
    /// Position of the first tensor's bytes.
    pub data: u64,
}

/// Opens a shard and compares its length and header.
pub(super) fn open_shard(folder: &Path, manifest: &Path, shard: &Shard) -> Result<Opened, CheckpointError> {
    // A description does not lead out of its folder.
    if Path::new(&shard.file).file_name() != Some(shard.file.as_ref()) {
        let reason = format!("the shard {:?} is not a file's name", shard.file);
        return Err(CheckpointError::Manifest { path: manifest.to_path_buf(), reason });
    }
    let path = folder.join(&shard.file);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(damaged(&path, "it is missing".to_owned()))
        }
        file => file.map_err(CheckpointError::io("open", &path)),
    }?;
    let length = file.metadata().map_err(CheckpointError::io("read", &path))?.len();
    if length != shard.bytes {
        return Err(damaged(&path, format!("it has {length} bytes, not {}", shard.bytes)));
    }
    let mut size = [0; header::LENGTH];
    read_exact_at(&file, &mut size, 0).map_err(CheckpointError::io("read", &path))?;
    let size = u64::from_le_bytes(size);
    let data = size.saturating_add(header::LENGTH as u64);
    if size > header::LARGEST || data > length {
        return Err(damaged(&path, format!("its header has {size} bytes")));
    }
    let mut bytes = vec![0; size as usize];
    read_exact_at(&file, &mut bytes, header::LENGTH as u64).map_err(CheckpointError::io("read", &path))?;
    let (parts, end) =
        header::decode(&bytes).map_err(|error| damaged(&path, format!("its header: {error}")))?;
    if data.saturating_add(end) != length {
        return Err(damaged(&path, format!("its header has {end} bytes of tensors, not {}", length - data)));
    }
    Ok(Opened { path, file, parts, data })
}

/// Finds the pieces of a tensor, which must be all of its rows.
pub(super) fn place(
    index: usize,
    tensor: &Tensor,
    shards: &[Opened],
    manifest: &Path,
) -> Result<Placed, CheckpointError> {
    let invalid = |reason: &str| CheckpointError::Manifest {
        path: manifest.to_path_buf(),
        reason: format!("tensor {}: {reason}", tensor.name),
    };
    let row_bytes = tensor.row_bytes().filter(|_| tensor.bytes().is_some());
    let row_bytes = row_bytes.ok_or_else(|| invalid("its shape exceeds 64 bits"))?;
    let mut pieces = Vec::new();
    let mut end = 0;
    for (file, rows) in layout::pieces(tensor) {
        end = rows.end;
        let file = file as usize;
        let shard = shards.get(file).ok_or_else(|| invalid("its shard does not exist"))?;
        let part = layout::part(tensor, &rows);
        match shard.parts.get(&part.name) {
            Some((stored, bytes)) if *stored == part => {
                let first = rows.start.saturating_mul(row_bytes);
                let at = shard.data + bytes.start;
                pieces.push(Place { bytes: first..first.saturating_add(part.bytes), file, at });
            }
            Some(_) => return Err(damaged(&shard.path, format!("{} has another type or shape", part.name))),
            None => return Err(damaged(&shard.path, format!("{} is missing", part.name))),
        }
    }
    match end == tensor.rows() {
        true => Ok(Placed { index, row_bytes, pieces }),
        false => Err(invalid("its pieces are not all of its rows")),
    }
}

/// A shard that differs from its description.
pub(super) fn damaged(path: &Path, reason: String) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_path_buf(), reason }
}
