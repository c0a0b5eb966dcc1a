//! What can go wrong with a lake.

use std::io;
use std::path::{Path, PathBuf};

/// Why traces could not be brought into a lake. A single trace that cannot be read is no error: the report names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A run's path holds no traces.
    #[error(transparent)]
    Trace(#[from] steptime_trace::Error),
    /// The ops of a trace nest deeper than they are read.
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
        /// Ours.
        expected: u32,
    },
    /// The folder holds something else.
    #[error("{} is no lake of steptime, and no empty folder to make one of: give a folder of its own with -o", path.display())]
    NoLake {
        /// The folder.
        path: PathBuf,
    },
    /// A run cannot have that name.
    #[error("`{0}` is no name for a run: letters, digits, `.`, `_` and `-`, and not `.` at its beginning")]
    Name(String),
    /// Two runs have the same name.
    #[error("{} and {} would both be the run `{name}`: ingest them one by one, each with a name of its own by --run", first.display(), second.display())]
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
        /// What is wrong.
        source: parquet::errors::ParquetError,
    },
    /// Not one trace could be read.
    #[error("none of the {count} traces could be read; the first, {}: {first}", path.display())]
    Nothing {
        /// How many files there were.
        count: usize,
        /// The first.
        path: PathBuf,
        /// Why the first could not be read.
        first: String,
    },
}

impl Error {
    /// Puts a path to what the operating system says.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Io { path: path.to_owned(), source }
    }
}
