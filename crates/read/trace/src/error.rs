//! What makes a file unreadable.

use std::io;
use std::path::{Path, PathBuf};

/// Why nothing could be read. Lesser trouble is repaired and counted in [`crate::Notes`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file or folder could not be read at all.
    #[error("cannot read {}: {source}; check the path and its permissions", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file was found, but its contents are damaged from the first byte on.
    #[error("{} is damaged: {source}; copy it or record it again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the decompressor says.
        source: io::Error,
    },
    /// A pointer that Git LFS left in the place of the file.
    #[error("{} is a Git LFS pointer, not the file itself: fetch it (git lfs pull)", .path.display())]
    LfsPointer {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing in the file.
    #[error("{} is empty; record the trace again, or wait until the profiler has written it", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not JSON.
    #[error(
        "{} is not a JSON trace: byte {offset} begins `{found}`; pass the .json, .json.gz, .json.zst or .tar.gz that the profiler wrote",
        .path.display()
    )]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Where in the decompressed file.
        offset: u64,
        /// The first bytes there.
        found: String,
    },
    /// The JSON breaks off or goes wrong before any event or node.
    #[error("{} cannot be read past byte {offset}: {problem}; record the trace again", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the decompressed file.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },
    /// A field of `meta.json` that should hold a count.
    #[error("{}: `{field}` is {found}, not a whole number from 0; correct it, or leave it out", .path.display())]
    NoCount {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What it holds.
        found: f64,
    },
    /// Valid JSON that is no trace.
    #[error(
        "{} has neither `traceEvents` nor `nodes` (read to byte {offset}); pass a Kineto trace or an execution trace",
        .path.display()
    )]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// Where the document ends in the decompressed file.
        offset: u64,
    },
    /// A trace of one kind where the other was asked for.
    #[error("{} is {found}, not {wanted}; pass the other file of the recording", .path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// An execution trace whose nodes do not fit any known schema.
    #[error("{} has execution trace schema `{schema}`, whose nodes (from byte {offset}) this version cannot read; it knows 1.0.0 to 1.1.1", .path.display())]
    UnsupportedSchema {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        schema: String,
        /// Where the nodes begin in the decompressed file.
        offset: u64,
    },
    /// An SQLite file that cannot be read as an export of Nsight Systems.
    #[error("{} cannot be read as an export of Nsight Systems: {problem}; export it again (nsys export --type sqlite REPORT.nsys-rep)", .path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A report of Nsight Systems that is not exported.
    #[error("{} is a report of Nsight Systems in its own format: export it (nsys export --type sqlite), and pass the .sqlite file", .path.display())]
    NotExported {
        /// The file.
        path: PathBuf,
    },
    /// An export that holds the kernels of several processes.
    #[error(
        "{} holds the kernels of {} processes ({}), and a trace is of one: profile each by itself (nsys profile -o report_rank%q{{RANK}})",
        .path.display(), .processes.len(), .processes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
    )]
    SeveralProcesses {
        /// The file.
        path: PathBuf,
        /// Their numbers.
        processes: Vec<i64>,
    },
    /// A folder or archive that holds no trace.
    #[error("{} holds no trace; a recording is a folder with kineto.json.gz, and et.json.gz and kineto_et.json.gz beside it where recorded", .path.display())]
    NoTraces {
        /// The folder or archive.
        path: PathBuf,
    },
    /// Two files that claim the same place in a recording.
    #[error("{} and {} are both {what}; keep one, or pass the file itself", .first.display(), .second.display())]
    Ambiguous {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The place they claim.
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
