//! Errors of checkpoints.

use std::io;
use std::path::{Path, PathBuf};

use steptime_tensor::DType;
use thiserror::Error;

/// Reason why a checkpoint cannot be written or read.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The operating system refuses.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action, as `create`.
        action: &'static str,
        /// File or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk is full.
    #[error(
        "no space for the checkpoint of {bytes} bytes in {}: free some or keep fewer checkpoints; earlier ones are \
         as they were", folder.display()
    )]
    NoSpace {
        /// Folder of the checkpoints.
        folder: PathBuf,
        /// Size of all tensors.
        bytes: u64,
    },
    /// Another process writes checkpoints there.
    #[error("another process writes checkpoints in {}: end it or give another folder", folder.display())]
    Locked {
        /// Folder of the checkpoints.
        folder: PathBuf,
    },
    /// There is a checkpoint of that step.
    #[error("{} exists: resume from it, or remove it", path.display())]
    Exists {
        /// The checkpoint.
        path: PathBuf,
    },
    /// A tensor's name is empty, reserved or given twice.
    #[error("the tensor name {name:?} is {reason}: give each tensor a name of its own")]
    Name {
        /// The name.
        name: String,
        /// `empty`, `reserved` or `given twice`.
        reason: &'static str,
    },
    /// A shape does not fit the number of elements.
    #[error("tensor {name}: shape {shape:?} does not have {elements} elements")]
    Shape {
        /// The name.
        name: String,
        /// The shape.
        shape: Vec<u64>,
        /// Number of given elements.
        elements: u64,
    },
    /// One row exceeds a shard.
    #[error(
        "tensor {name}: a row of {bytes} bytes does not fit in a shard of {limit} bytes: allow larger shards"
    )]
    Row {
        /// The name.
        name: String,
        /// Size of a row.
        bytes: u64,
        /// Largest size of a shard.
        limit: u64,
    },
    /// The description is invalid.
    #[error("{}: {reason}: the checkpoint is damaged, use an earlier one", path.display())]
    Manifest {
        /// `checkpoint.toml`.
        path: PathBuf,
        /// The first invalid part.
        reason: String,
    },
    /// The description is of a later format.
    #[error("{} has version {version}, and this program reads up to {known}: use a newer program", path.display())]
    Version {
        /// `checkpoint.toml`.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The latest known version.
        known: u32,
    },
    /// A shard does not have the described content.
    #[error("shard {}: {reason}: the checkpoint is damaged, use an earlier one", path.display())]
    Damaged {
        /// The shard.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// No tensor has that name.
    #[error("{} has no tensor {name}", folder.display())]
    NoTensor {
        /// The checkpoint.
        folder: PathBuf,
        /// The name.
        name: String,
    },
    /// A tensor has another element type.
    #[error("tensor {name} is {stored}, not {requested}")]
    Type {
        /// The name.
        name: String,
        /// Type in the checkpoint.
        stored: DType,
        /// Type of the request.
        requested: DType,
    },
    /// A buffer has another size than the rows.
    #[error("tensor {name}: the rows have {needed} numbers, the buffer has {given}")]
    Buffer {
        /// The name.
        name: String,
        /// Numbers of the rows.
        needed: u64,
        /// Size of the buffer.
        given: u64,
    },
    /// Rows or elements outside of a tensor.
    #[error("tensor {name}: {unit} {first} to {last} are outside of its {count}")]
    Range {
        /// The name.
        name: String,
        /// `rows` or `bytes`.
        unit: &'static str,
        /// First row.
        first: u64,
        /// Row after the last one.
        last: u64,
        /// Number of rows.
        count: u64,
    },
}

impl CheckpointError {
    /// An error of the operating system at a path.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| CheckpointError::Io { action, path: path.to_path_buf(), source }
    }

    /// The error itself, or that there is no space for `bytes` if that is the system's reason.
    pub(super) fn or_no_space(self, folder: &Path, bytes: u64) -> Self {
        match &self {
            CheckpointError::Io { source, .. }
                if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
            {
                CheckpointError::NoSpace { folder: folder.to_path_buf(), bytes }
            }
            _ => self,
        }
    }
}
