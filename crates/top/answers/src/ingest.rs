//! Result of ingesting traces into a lake.

use std::path::Path;

use serde::Serialize;
use steptime_fleet::{FileResult, Outcome, Report};

use super::shared::SCHEMA;

/// Result of an ingest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IngestReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `ingest`.
    pub command: &'static str,
    /// The lake, as given.
    pub lake: String,
    /// The version of the lake.
    pub lake_version: u32,
    /// The runs, by their first file.
    pub runs: Vec<IngestedRun>,
    /// Files that were skipped: damaged, or of a rank that another file already gave.
    pub skipped: Vec<SkippedFile>,
    /// Files that are not Kineto traces.
    pub ignored: Vec<SkippedFile>,
}

/// Result of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IngestedRun {
    /// Its name.
    pub run: String,
    /// Ranks that were written.
    pub ingested: usize,
    /// Ranks kept from before, made from the same files.
    pub kept: usize,
    /// Files that were skipped.
    pub skipped: usize,
    /// Files that are not Kineto traces.
    pub ignored: usize,
    /// Bytes of the files read for the written ranks.
    pub bytes: u64,
    /// Repairs in all its ranks.
    pub repairs: u64,
    /// Steps of all its ranks.
    pub steps: u64,
    /// Ops and annotations of all its ranks.
    pub ops: u64,
    /// Kernels of all its ranks.
    pub kernels: u64,
    /// Copies and fills of all its ranks.
    pub copies: u64,
    /// Collectives of all its ranks.
    pub collectives: u64,
    /// Gaps of its streams.
    pub gaps: u64,
}

/// A file that did not become a rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkippedFile {
    /// The file.
    pub file: String,
    /// Its run.
    pub run: String,
    /// Its rank, where known.
    pub rank: Option<u32>,
    /// Reason why it was left out.
    pub reason: String,
}

impl IngestReport {
    /// Makes the answer.
    #[must_use]
    pub fn new(lake: &Path, report: &Report) -> IngestReport {
        let mut runs: Vec<IngestedRun> = Vec::new();
        for file in &report.files {
            let at = runs.iter().position(|run| run.run == file.run).unwrap_or(runs.len());
            if at == runs.len() {
                runs.push(IngestedRun { run: file.run.clone(), ..IngestedRun::default() });
            }
            runs[at].add(file);
        }
        let left_out = |outcome: Outcome| {
            let files = report.files.iter().filter(move |file| file.outcome == outcome);
            files.map(SkippedFile::new).collect()
        };
        IngestReport {
            schema: SCHEMA,
            command: "ingest",
            lake: lake.display().to_string(),
            lake_version: report.steptime_lake,
            runs,
            skipped: left_out(Outcome::Skipped),
            ignored: left_out(Outcome::Ignored),
        }
    }
}

impl IngestedRun {
    fn add(&mut self, file: &FileResult) {
        match file.outcome {
            Outcome::Ingested => {
                self.ingested += 1;
                self.bytes += file.bytes;
            }
            Outcome::Kept => self.kept += 1,
            Outcome::Skipped => self.skipped += 1,
            Outcome::Ignored => self.ignored += 1,
        }
        let rows = &file.rows;
        self.repairs += file.repairs;
        self.steps += rows.steps;
        self.ops += rows.ops;
        self.kernels += rows.kernels;
        self.copies += rows.activities - rows.kernels;
        self.collectives += rows.collectives;
        self.gaps += rows.gaps;
    }
}

impl SkippedFile {
    fn new(file: &FileResult) -> SkippedFile {
        SkippedFile {
            file: file.path.clone(),
            run: file.run.clone(),
            rank: file.rank,
            reason: file.reason.clone().unwrap_or_default(),
        }
    }
}
