//! Errors of datasets.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Errors of reading, writing and converting datasets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("cannot use {}: {source}{}", path.display(), remedy(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A folder without a description.
    #[error("cannot use {}: there is no such file, so the folder is not a dataset; `steptime-train data` converts data to one", path.display())]
    NoDataset {
        /// The missing description.
        path: PathBuf,
    },
    /// The description is not valid TOML, or has unknown or missing entries.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// The description.
        path: PathBuf,
        /// The reason, with line and column.
        source: Box<toml::de::Error>,
    },
    /// The description contradicts itself.
    #[error("{}: {reason}; convert the data again", path.display())]
    Description {
        /// The description.
        path: PathBuf,
        /// The contradiction.
        reason: String,
    },
    /// The dataset is of another version.
    #[error("{} is of version {found}, and this steptime reads version {expected}: convert the data again", path.display())]
    Version {
        /// The description.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this steptime reads.
        expected: u32,
    },
    /// A file is shorter or longer than its description says.
    #[error("{} has {found} bytes, but its {count} values of {width} bytes need {expected}: the file was cut or changed; convert the data again", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Number of values by the description.
        count: u64,
        /// Bytes of a value.
        width: u64,
        /// Expected bytes.
        expected: u64,
        /// Actual bytes.
        found: u64,
    },
    /// An index is outside its table.
    #[error("{}: row {row}, column {column}: index {value} is outside 0..{cardinality}; the file was changed, or the cardinality in features.toml is wrong", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Row in the file, from 0.
        row: u64,
        /// Column.
        column: String,
        /// The index.
        value: i64,
        /// Number of categories of the column.
        cardinality: u32,
    },
    /// The offsets of a multi-hot column do not ascend, or exceed the values.
    #[error("{}: row {row}, column {column}: its values are {from}..{to} of {values}; the file was changed, convert the data again", path.display())]
    Offsets {
        /// The file of offsets.
        path: PathBuf,
        /// Row in the file, from 0.
        row: u64,
        /// Column.
        column: String,
        /// First value of the row.
        from: u64,
        /// End of the values of the row.
        to: u64,
        /// Number of values of the column.
        values: u64,
    },
    /// A batch has more values in one column than 32-bit offsets can count.
    #[error(
        "column {column} has {values} values in one batch, and at most {} are possible: choose a smaller batch",
        i32::MAX
    )]
    BatchValues {
        /// Column.
        column: String,
        /// Number of values.
        values: u64,
    },
    /// The place of a new dataset is occupied.
    #[error("{} already exists and is not an empty folder: choose another folder, or remove it first", path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// An option has an impossible value.
    #[error("invalid {option}: {reason}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// The reason and the remedy.
        reason: String,
    },
    /// Rows for a writer do not have the columns of its description.
    #[error("rows do not fit their description: {reason}")]
    Columns {
        /// The difference.
        reason: String,
    },
    /// The memory of a batch could not be allocated.
    #[error(
        "cannot allocate {bytes} bytes for a batch: {source}; choose a smaller batch or fewer batches ahead"
    )]
    Allocation {
        /// Bytes of the batch.
        bytes: usize,
        /// The allocator's reason.
        source: io::Error,
    },
    /// An allocator returned a buffer that is too short or not aligned.
    #[error(
        "the allocator returned {found} bytes at alignment {alignment}, and a batch needs {expected} at {least}"
    )]
    Buffer {
        /// Bytes of the buffer.
        found: usize,
        /// Alignment of its first byte.
        alignment: usize,
        /// Needed bytes.
        expected: usize,
        /// Needed alignment.
        least: usize,
    },
    /// A thread that reads ahead has panicked.
    #[error("a thread that reads batches ahead has panicked; its message is on standard error")]
    Panicked,
    /// The categories of a column do not fit in the memory limit.
    #[error(
        "column {column} has {kept} categories that occur often enough, and the tables of ids may have {limit} bytes: raise the frequency threshold, hash the categories, or raise the memory limit"
    )]
    Categories {
        /// Column.
        column: String,
        /// Number of categories that occur often enough.
        kept: usize,
        /// Limit in bytes.
        limit: u64,
    },
    /// All rows of the inputs are damaged, or there are none.
    #[error("no row is valid; the first damaged one of {files} file(s): {first}")]
    NoRows {
        /// Number of files.
        files: usize,
        /// Place and reason of the first damaged row.
        first: String,
    },
    /// A Parquet file could not be read.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: parquet::errors::ParquetError,
    },
    /// A Parquet file has no column of this name.
    #[error("{} has no column {column}; its columns are {known}", path.display())]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        column: String,
        /// Names of its columns.
        known: String,
    },
    /// A column of a Parquet file has an unusable type.
    #[error("{}: column {column} is {found}, and {role} needs {expected}", path.display())]
    ColumnType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// Use of the column.
        role: &'static str,
        /// Possible types.
        expected: &'static str,
    },
}

impl Error {
    /// Returns a function that adds a path to an error of the operating system.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Io { path: path.to_owned(), source }
    }

    /// Checks an option's value.
    pub(crate) fn option(
        option: &'static str,
        value: u64,
        range: Range<u64>,
        remedy: &str,
    ) -> Result<(), Error> {
        if range.contains(&value) {
            return Ok(());
        }
        Err(Error::Option { option, reason: format!("{value} is not possible; {remedy}") })
    }
}

/// The remedy of an error of the operating system; empty where its reason says enough.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "; check the path",
        io::ErrorKind::StorageFull => "; free some space, or choose another place",
        io::ErrorKind::UnexpectedEof => "; the file is cut: get it again",
        io::ErrorKind::InvalidData => "; the file is damaged: get it again",
        _ => "",
    }
}
