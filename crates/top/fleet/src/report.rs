//! What came of an ingest.

use serde::Serialize;

use crate::lake::{Rows, VERSION};

/// What came of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was read, and its rank written.
    Ingested,
    /// Its rank was there, made of the same file.
    Kept,
    /// It cannot be read, or is cut off; or its rank is another file's.
    Skipped,
    /// It is no Kineto trace.
    Ignored,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The file.
    pub path: String,
    /// Its run.
    pub run: String,
    /// Its rank, where it is known.
    pub rank: Option<u32>,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it was skipped or ignored.
    pub reason: Option<String>,
    /// Its length, bytes.
    pub bytes: u64,
    /// What was repaired in it.
    pub repairs: u64,
    /// What its tables hold.
    pub rows: Rows,
}

/// All files of a shard, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version of the lake.
    pub steptime_lake: u32,
    /// The files.
    pub files: Vec<Found>,
}

impl Report {
    pub(crate) fn new(files: Vec<Found>) -> Report {
        Report { steptime_lake: VERSION, files }
    }

    /// How many files an outcome has.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.files.iter().filter(|file| file.outcome == outcome).count()
    }
}
