//! Reports of an ingest.

use serde::Serialize;

use crate::lake::{Rows, VERSION};

/// Outcome of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The file was read, and its rank written.
    Ingested,
    /// The lake has its rank already, made from the same file.
    Kept,
    /// The file cannot be read, or is cut off; or another file has its rank.
    Skipped,
    /// The file is not a Kineto trace.
    Ignored,
}

/// Result for one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileResult {
    /// The file.
    pub path: String,
    /// Its run.
    pub run: String,
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// Its outcome.
    pub outcome: Outcome,
    /// Reason why it was skipped or ignored.
    pub reason: Option<String>,
    /// Length, bytes.
    pub bytes: u64,
    /// Number of repairs in it.
    pub repairs: u64,
    /// Numbers of events in its tables.
    pub rows: Rows,
}

/// All files of a shard, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version of the lake.
    pub steptime_lake: u32,
    /// The files.
    pub files: Vec<FileResult>,
}

impl Report {
    pub(crate) fn new(files: Vec<FileResult>) -> Report {
        Report { steptime_lake: VERSION, files }
    }

    /// Returns the number of files with an outcome.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.files.iter().filter(|file| file.outcome == outcome).count()
    }
}
