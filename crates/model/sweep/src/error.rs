//! What can go wrong with sweeps.

use std::path::PathBuf;

/// Why a sweep could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The file is no sweep, or only the front part of one.
    #[error("{} is not a whole sweep: {what}; measure it again with `python -m steptime.measure`, or fetch it again where others published it", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file is of another version.
    #[error("{} is a sweep of version {found}, and this steptime reads {expected}; measure again with the steptime.measure of this version", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// Ours.
        expected: &'static str,
    },
    /// A row cannot be.
    #[error("{}, row {row} ({op}): {what}; the file is damaged", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The row, from 0.
        row: usize,
        /// Its op.
        op: String,
        /// What is wrong.
        what: String,
    },
    /// The file is no table of a publisher that is known here.
    #[error("{} is no table that is known: {what}; known are sweeps of steptime.measure, NeuSight's CSV and aiconfigurator's Parquet of matrix products", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Sweeps of two GPUs.
    #[error("{} is of {first}, {} of {second}: a profile is of one GPU, fit them one by one", first_path.display(), second_path.display())]
    TwoDevices {
        /// The first file.
        first_path: PathBuf,
        /// Its GPU.
        first: String,
        /// The second file.
        second_path: PathBuf,
        /// Its GPU.
        second: String,
    },
    /// No rows.
    #[error("{} has no rows; measure for longer", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The metadata lack what a specification needs.
    #[error("the sweep's metadata do not say {0}; give a specification with `--spec`")]
    Spec(String),
}
