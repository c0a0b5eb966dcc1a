//! Errors of lakes.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of an ingest. A single trace that cannot be read is not an error: the report names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A run's path holds no traces.
    #[error(transparent)]
    Trace(#[from] steptime_trace::Error),
    /// The ops of a trace nest deeper than the supported depth.
    #[error(transparent)]
    Ops(steptime_graph::Error),
    /// A file or folder of the lake could not be read or written.
    #[error("cannot use {}: {source}; check that it may be written, and that the disk has room", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The lake is of another version.
    #[error("{} is a lake of version {found}, and this steptime writes {expected}: ingest the traces again into another folder", path.display())]
    Version {
        /// The lake.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that this steptime writes.
        expected: u32,
    },
    /// The folder is neither a lake nor empty.
    #[error("{} is neither a lake of steptime nor an empty folder: give another folder with -o", path.display())]
    NoLake {
        /// The folder.
        path: PathBuf,
    },
    /// The name of a run is not valid.
    #[error(
        "invalid run name `{0}`: allowed are letters, digits, `.`, `_` and `-`, but not `.` at the beginning"
    )]
    Name(String),
    /// Two runs have the same name.
    #[error("{} and {} would both be the run `{name}`: ingest them one by one, each with its own --run NAME", first.display(), second.display())]
    SameName {
        /// One run.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The name.
        name: String,
    },
    /// One name for several runs.
    #[error("--run names one run, and {0} were given: ingest them one by one")]
    OneName(usize),
    /// Parquet could not be written.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: parquet::errors::ParquetError,
    },
    /// Not one trace could be read.
    #[error("none of the {count} traces could be read; the first, {}: {first}", path.display())]
    Nothing {
        /// Number of files.
        count: usize,
        /// The first file.
        path: PathBuf,
        /// The reason why the first could not be read.
        first: String,
    },
}

impl Error {
    /// Returns a function that adds a path to an error of the operating system.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Io { path: path.to_owned(), source }
    }
}
