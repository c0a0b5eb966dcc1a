//! Errors of unreadable files.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why nothing could be read. Smaller defects are repaired and counted in [`crate::Notes`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file or folder could not be read at all.
    #[error("cannot read {}: {source}; check the path and its permissions", .path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file was found, but its contents are damaged from the first byte on.
    #[error("{} is damaged: {source}; copy it or record it again", .path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error of the decompressor.
        source: io::Error,
    },
    /// The file is a Git LFS pointer and not the file itself.
    #[error("{} is a Git LFS pointer, not the file itself: fetch it (git lfs pull)", .path.display())]
    LfsPointer {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{} is empty; record the trace again, or wait until the profiler has written it", .path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not JSON.
    #[error(
        "{} is not a JSON trace: byte {offset} begins `{found}`; pass the .json, .json.gz, .json.zst or .tar.gz that the profiler wrote",
        .path.display()
    )]
    NotJson {
        /// Path of the file.
        path: PathBuf,
        /// Offset in the decompressed file.
        offset: u64,
        /// First bytes at the offset.
        found: String,
    },
    /// The JSON is truncated or invalid before any event or node.
    #[error("{} cannot be read past byte {offset}: {problem}; record the trace again", .path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Offset in the decompressed file.
        offset: u64,
        /// Description of the problem.
        problem: String,
    },
    /// A field of `meta.json` that must be a count is not one.
    #[error("{}: `{field}` is {found}, not a whole number from 0; correct it, or leave it out", .path.display())]
    NoCount {
        /// Path of the file.
        path: PathBuf,
        /// Name of the field.
        field: String,
        /// Value of the field.
        found: f64,
    },
    /// The file is valid JSON but not a trace.
    #[error(
        "{} has neither `traceEvents` nor `nodes` (read to byte {offset}); pass a Kineto trace or an execution trace",
        .path.display()
    )]
    NotATrace {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the end of the document in the decompressed file.
        offset: u64,
    },
    /// The trace is not of the requested kind.
    #[error("{} is {found}, not {wanted}; pass the other file of the recording", .path.display())]
    WrongKind {
        /// Path of the file.
        path: PathBuf,
        /// Kind of the file.
        found: &'static str,
        /// Requested kind.
        wanted: &'static str,
    },
    /// The nodes of the execution trace do not fit any known schema.
    #[error("{} has execution trace schema `{schema}`, whose nodes (from byte {offset}) this version cannot read; it knows 1.0.0 to 1.1.1", .path.display())]
    UnsupportedSchema {
        /// Path of the file.
        path: PathBuf,
        /// Schema name in the file.
        schema: String,
        /// Offset of the nodes in the decompressed file.
        offset: u64,
    },
    /// The SQLite file cannot be read as an export of Nsight Systems.
    #[error("{} cannot be read as an export of Nsight Systems: {problem}; export it again (nsys export --type sqlite REPORT.nsys-rep)", .path.display())]
    Export {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The file is a report of Nsight Systems that was not exported.
    #[error("{} is a report of Nsight Systems in its own format: export it (nsys export --type sqlite), and pass the .sqlite file", .path.display())]
    NotExported {
        /// Path of the file.
        path: PathBuf,
    },
    /// The export has the kernels of several processes.
    #[error(
        "{} holds the kernels of {} processes ({}), and a trace is of one: profile each by itself (nsys profile -o report_rank%q{{RANK}})",
        .path.display(), .processes.len(), .processes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
    )]
    SeveralProcesses {
        /// Path of the file.
        path: PathBuf,
        /// Process ids.
        processes: Vec<i64>,
    },
    /// The folder or archive contains no trace.
    #[error("{} holds no trace; a recording is a folder with kineto.json.gz, and et.json.gz and kineto_et.json.gz beside it where recorded", .path.display())]
    NoTraces {
        /// Path of the folder or archive.
        path: PathBuf,
    },
    /// Two files have the same role in a recording.
    #[error("{} and {} are both {what}; keep one, or pass the file itself", .first.display(), .second.display())]
    Ambiguous {
        /// Path of one file.
        first: PathBuf,
        /// Path of the other file.
        second: PathBuf,
        /// Role of both files.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        move |source| match (path.to_owned(), source.kind()) {
            (path, InvalidData | InvalidInput | Other | UnexpectedEof) => Error::Damaged { path, source },
            (path, _) => Error::Io { path, source },
        }
    }
}
