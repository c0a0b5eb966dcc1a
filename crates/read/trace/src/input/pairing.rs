//! Pairing of loose traces by rank.

use super::layout::stem;
use super::{Recording, rank};
use crate::document::{Document, Kinds};
use crate::error::Error;
use crate::execution::ExecutionTrace;
use crate::kineto::Trace;
use std::path::{Path, PathBuf};

/// Loose traces, in the order in which they were found.
#[derive(Default)]
pub(super) struct LooseTraces {
    pub(super) kinetos: Vec<(PathBuf, Trace)>,
    pub(super) executions: Vec<(PathBuf, ExecutionTrace)>,
    /// Files that are not traces.
    pub(super) others: Vec<PathBuf>,
    /// Files and archives with traces of a kind that was not wanted.
    pub(super) unwanted: Vec<PathBuf>,
}

impl LooseTraces {
    /// Returns the traces of recordings again. They have traces of one kind: with both kinds, no file is left to read.
    pub(super) fn from_recordings(recordings: Vec<Recording>) -> LooseTraces {
        let mut traces = LooseTraces::default();
        for recording in recordings {
            traces.kinetos.extend(recording.timing.map(|trace| (recording.path.clone(), trace)));
            traces.executions.extend(recording.execution.map(|trace| (recording.path, trace)));
        }
        traces
    }

    /// Returns those of the wanted kinds of which no trace was read.
    pub(super) fn missing(&self, wanted: Kinds) -> Kinds {
        Kinds {
            kineto: wanted.kineto && self.kinetos.is_empty(),
            execution: wanted.execution && self.executions.is_empty(),
        }
    }

    /// Whether traces of both kinds were read once those of the wanted kinds are.
    pub(super) fn is_complete_with(&self, wanted: Kinds) -> bool {
        (wanted.kineto || !self.kinetos.is_empty()) && (wanted.execution || !self.executions.is_empty())
    }

    /// Adds the result of reading a file or an entry of an archive; one that is not a trace is only listed. `file` is the file
    /// to read again where its kind was not wanted.
    pub(super) fn take(
        &mut self,
        path: &Path,
        file: &Path,
        read: Result<Option<Document>, Error>,
    ) -> Result<(), Error> {
        match read {
            Ok(Some(Document::Kineto(trace))) => self.kinetos.push((path.to_owned(), *trace)),
            Ok(Some(Document::Execution(trace))) => self.executions.push((path.to_owned(), *trace)),
            Ok(None) if self.unwanted.last().is_some_and(|last| last == file) => {}
            Ok(None) => self.unwanted.push(file.to_owned()),
            Err(Error::NotATrace { .. } | Error::NotJson { .. }) => self.others.push(path.to_owned()),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) fn extend(&mut self, other: LooseTraces) {
        self.kinetos.extend(other.kinetos);
        self.executions.extend(other.executions);
        self.others.extend(other.others);
        self.unwanted.extend(other.unwanted);
    }

    /// Returns one recording per Kineto trace, with the execution trace of its rank; execution traces
    /// that match none, or several, become recordings of their own.
    pub(super) fn pair(self) -> Vec<Recording> {
        let only_pair = self.kinetos.len() == 1 && self.executions.len() == 1;
        let kineto_ranks = ranks(self.kinetos.iter().map(|(path, trace)| {
            (path.as_path(), trace.distributed.as_ref().and_then(|distributed| distributed.rank))
        }));
        let execution_ranks = ranks(self.executions.iter().map(|(path, _)| (path.as_path(), None)));
        let mut recordings: Vec<Recording> = self
            .kinetos
            .into_iter()
            .zip(kineto_ranks)
            .map(|((path, trace), rank)| Recording { rank, timing: Some(trace), ..Recording::new(path) })
            .collect();
        let count =
            |rank: Option<u32>, all: &[Option<u32>]| all.iter().filter(|other| **other == rank).count();
        let timed: Vec<Option<u32>> = recordings.iter().map(|recording| recording.rank).collect();
        for ((path, trace), rank) in self.executions.into_iter().zip(&execution_ranks) {
            let unique = rank.is_some() && count(*rank, &timed) == 1 && count(*rank, &execution_ranks) == 1;
            let partner = match unique {
                _ if only_pair => Some(0),
                true => timed.iter().position(|other| other == rank),
                false => None,
            };
            match partner {
                Some(index) => recordings[index].execution = Some(trace),
                None => {
                    recordings.push(Recording { rank: *rank, execution: Some(trace), ..Recording::new(path) })
                }
            }
        }
        recordings
    }
}

/// Returns the rank of each trace: from the trace itself, otherwise from its name. Trailing numbers of names
/// count if there are several traces whose names differ only in them, and the numbers are consecutive from 0 or 1:
/// `mlp_64`, `mlp_128` are not ranks.
fn ranks<'a>(traces: impl Iterator<Item = (&'a Path, Option<u32>)>) -> Vec<Option<u32>> {
    let traces: Vec<_> = traces.map(|(path, rank)| (stem(path), rank)).collect();
    let trailing = traces.len() > 1 && rank::numbered(traces.iter().map(|(stem, _)| stem.as_str()));
    let named = |stem: &str| rank::announced(stem).or_else(|| rank::trailing(stem).filter(|_| trailing));
    traces.iter().map(|(stem, rank)| rank.or_else(|| named(stem))).collect()
}
