//! Reads single traces, from bytes, files and streams.

use crate::byte_source::{Slice, Stream};
use crate::document::{self, Document, Kinds, Plan};
use crate::error::Error;
use crate::execution::ExecutionTrace;
use crate::kineto::Trace;
use crate::progress::Progress;
use crate::source;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const ANY: Kinds = Kinds { kineto: true, execution: true };

/// Reads either kind of trace from decompressed bytes.
///
/// # Errors
/// If the bytes are not a trace.
pub fn read(bytes: &[u8]) -> Result<Document, Error> {
    let progress = Progress::silent();
    some(document::read(&mut Slice::new(bytes, &progress), plan(Path::new("<bytes>"))))
}

/// Reads either kind of trace from a file, plain, gzip or zstd.
///
/// # Errors
/// If the file cannot be read or is not a trace.
pub fn read_file(path: &Path) -> Result<Document, Error> {
    some(source::read(plan(path), &Progress::silent()))
}

/// Reads either kind of trace from a stream of decompressed bytes, through a window of a few
/// megabytes.
///
/// # Errors
/// If the stream fails at once or is not a trace.
pub fn read_from(reader: impl Read) -> Result<Document, Error> {
    some(document::read(&mut Stream::new(reader), plan(Path::new("<stream>"))))
}

/// Reads a Kineto trace from decompressed bytes.
///
/// # Errors
/// If the bytes are not a Kineto trace.
pub fn read_kineto(bytes: &[u8]) -> Result<Trace, Error> {
    kineto(read(bytes)?, Path::new("<bytes>"))
}

/// Reads a Kineto trace from a file, plain, gzip or zstd.
///
/// # Errors
/// If the file cannot be read or is not a Kineto trace.
pub fn read_kineto_file(path: &Path) -> Result<Trace, Error> {
    kineto(read_file(path)?, path)
}

/// Reads a Kineto trace from a stream of decompressed bytes.
///
/// # Errors
/// If the stream fails at once or is not a Kineto trace.
pub fn read_kineto_from(reader: impl Read) -> Result<Trace, Error> {
    kineto(read_from(reader)?, Path::new("<stream>"))
}

/// Reads an execution trace from decompressed bytes.
///
/// # Errors
/// If the bytes are not an execution trace.
pub fn read_execution_trace(bytes: &[u8]) -> Result<ExecutionTrace, Error> {
    execution(read(bytes)?, Path::new("<bytes>"))
}

/// Reads an execution trace from a file, plain, gzip or zstd.
///
/// # Errors
/// If the file cannot be read or is not an execution trace.
pub fn read_execution_trace_file(path: &Path) -> Result<ExecutionTrace, Error> {
    execution(read_file(path)?, path)
}

/// Reads an execution trace from a stream of decompressed bytes.
///
/// # Errors
/// If the stream fails at once or is not an execution trace.
pub fn read_execution_trace_from(reader: impl Read) -> Result<ExecutionTrace, Error> {
    execution(read_from(reader)?, Path::new("<stream>"))
}

/// Reads a Kineto trace from a file, plain, gzip or zstd, through a window of a few megabytes, on this thread only: for callers that
/// read several files in parallel.
///
/// # Errors
/// If the file cannot be read or is not a Kineto trace.
pub fn read_kineto_file_windowed(path: &Path) -> Result<Trace, Error> {
    let failed = Error::io(path);
    let file = File::open(path).map_err(&failed)?;
    if source::is_lfs_pointer(&file) {
        return Err(Error::LfsPointer { path: path.to_owned() });
    }
    let wanted = Plan { threads: 1, ..plan(path) };
    if let Some(Some(trace)) = source::exported(wanted, &file)? {
        return Ok(trace);
    }
    let progress = Progress::silent();
    let bytes = source::bytes(file, &progress).map_err(&failed)?;
    kineto(some(document::read(&mut Stream::new(bytes), wanted))?, path)
}

fn plan(path: &Path) -> Plan<'_> {
    Plan { path, wanted: ANY, threads: crate::workers::available() }
}

/// Unwraps the document: all kinds are requested, so there always is one.
fn some(read: Result<Option<Document>, Error>) -> Result<Document, Error> {
    read.map(|document| document.unwrap_or_else(|| Document::Kineto(Box::default())))
}

fn kineto(document: Document, path: &Path) -> Result<Trace, Error> {
    match document {
        Document::Kineto(trace) => Ok(*trace),
        Document::Execution(_) => Err(Error::WrongKind {
            path: path.to_owned(),
            found: "an execution trace",
            wanted: "a Kineto trace",
        }),
    }
}

fn execution(document: Document, path: &Path) -> Result<ExecutionTrace, Error> {
    match document {
        Document::Execution(trace) => Ok(*trace),
        Document::Kineto(_) => Err(Error::WrongKind {
            path: path.to_owned(),
            found: "a Kineto trace",
            wanted: "an execution trace",
        }),
    }
}
