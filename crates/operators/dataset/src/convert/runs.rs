//! Counts of a column that do not fit in memory: sorted runs in a temporary file, merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::table::{ENTRY, Entry};
use crate::Error;

/// Entries of a run that are read at once.
const READ: usize = 8192;

/// Sorted runs of entries in one file without a name of its own after this value is dropped.
#[derive(Debug)]
pub(super) struct Runs {
    file: File,
    path: PathBuf,
    /// Number of entries of each run.
    lengths: Vec<u64>,
}

impl Runs {
    pub(super) fn create(folder: &Path) -> Result<Runs, Error> {
        let file = tempfile::tempfile_in(folder).map_err(Error::io(folder))?;
        Ok(Runs { file, path: folder.to_owned(), lengths: Vec::new() })
    }

    /// Appends a run of entries in the order of tokens.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let write = || {
            let mut writer = BufWriter::with_capacity(1 << 18, &self.file);
            entries.iter().try_for_each(|entry| writer.write_all(&entry.to_bytes()))?;
            writer.flush()
        };
        write().map_err(Error::io(&self.path))?;
        self.lengths.push(entries.len() as u64);
        Ok(())
    }

    /// Calls `each` with every token of all runs and the sum of its numbers, in the order of tokens.
    pub(super) fn merge(&self, mut each: impl FnMut(Entry)) -> Result<(), Error> {
        let mut starts = 0;
        let mut runs: Vec<Run> = Vec::new();
        for &length in &self.lengths {
            runs.push(Run { at: starts, left: length, read: Vec::new() });
            starts += length;
        }
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heads.extend(self.next(run)?.map(|entry| Reverse((entry.token(), number, entry.number))));
        }
        let mut last: Option<Entry> = None;
        while let Some(Reverse((token, number, count))) = heads.pop() {
            match &mut last {
                Some(entry) if entry.token() == token => entry.number = entry.number.saturating_add(count),
                _ => {
                    if let Some(entry) = last.replace(Entry::new(token, count)) {
                        each(entry);
                    }
                }
            }
            let next = self.next(&mut runs[number])?;
            heads.extend(next.map(|entry| Reverse((entry.token(), number, entry.number))));
        }
        last.into_iter().for_each(each);
        Ok(())
    }

    fn next(&self, run: &mut Run) -> Result<Option<Entry>, Error> {
        if run.read.is_empty() && run.left > 0 {
            let count = run.left.min(READ as u64) as usize;
            let mut bytes = vec![0; count * ENTRY];
            let mut read = || {
                (&self.file).seek(SeekFrom::Start(run.at * ENTRY as u64))?;
                (&self.file).read_exact(&mut bytes)
            };
            read().map_err(Error::io(&self.path))?;
            let (entries, _) = bytes.as_chunks();
            run.read = entries.iter().rev().map(Entry::from_bytes).collect();
            (run.at, run.left) = (run.at + count as u64, run.left - count as u64);
        }
        Ok(run.read.pop())
    }
}

/// The rest of a run.
struct Run {
    /// Entry of the file from which it continues.
    at: u64,
    /// Number of entries from there.
    left: u64,
    /// Entries before them, from the last to the first.
    read: Vec<Entry>,
}
