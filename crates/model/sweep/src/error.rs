//! Errors of sweeps.

use std::path::PathBuf;

/// Reason why a sweep could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened.
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is not a sweep, or only the front part of one.
    #[error("{} is not a whole sweep: {what}; measure it again with `python -m steptime.measure`, or fetch it again where others published it", path.display())]
    Broken {
        path: PathBuf,
        /// Defect of the file.
        what: String,
    },
    /// The file is of another version.
    #[error("{} is a sweep of version {found}, and this steptime reads {expected}; measure again with the steptime.measure of this version", path.display())]
    Version {
        path: PathBuf,
        /// Version of the file.
        found: String,
        /// Version that this crate reads.
        expected: &'static str,
    },
    /// A row is impossible.
    #[error("{}, row {row} ({op}): {what}; the file is damaged", path.display())]
    Row {
        path: PathBuf,
        /// Row, from 0.
        row: usize,
        op: String,
        /// Defect of the row.
        what: String,
    },
    /// The file is not a table of a supported publisher.
    #[error("{} is not a supported table: {what}; supported: sweeps of steptime.measure, NeuSight's CSV, aiconfigurator's Parquet of matrix products", path.display())]
    Table {
        path: PathBuf,
        /// Reason why it is not supported.
        what: String,
    },
    /// The sweeps are of two GPUs.
    #[error("{} is of {first}, {} of {second}: a profile is of one GPU, fit them one by one", first_path.display(), second_path.display())]
    TwoDevices {
        first_path: PathBuf,
        /// GPU of the first file.
        first: String,
        second_path: PathBuf,
        /// GPU of the second file.
        second: String,
    },
    /// The sweep has no rows.
    #[error("{} has no rows; measure for longer", path.display())]
    Empty { path: PathBuf },
    /// The metadata lack a value that a specification needs.
    #[error("the sweep's metadata have no {0}; give a specification with `--spec`")]
    Spec(String),
}
