//! Opens inputs, with progress.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use steptime::trace::{self, Input, Options, Recording, Want};
use steptime::{Choice, Step};
pub use steptime::{is_timed, timing};

use super::Failure;
use crate::progress::Progress;

/// A step, and what the reader had to repair to get it.
pub struct Loaded {
    /// The step.
    pub step: Step,
    /// Repairs made while reading, in words.
    pub repairs: Option<String>,
}

impl Loaded {
    /// What went wrong, with what was repaired: of a trace that was cut, the part that is missing may be the reason.
    pub fn with_repairs(&self, error: &steptime::Error) -> Failure {
        match &self.repairs {
            Some(repairs) => format!("{error} ({repairs})").into(),
            None => error.to_string().into(),
        }
    }
}

/// Opens everything an input holds.
pub fn everything(path: &Path) -> Result<Input, Failure> {
    open(path, Want::ALL)
}

fn open(path: &Path, want: Want) -> Result<Input, Failure> {
    let progress = Progress::bytes();
    let report = |done, total| progress.report(done, total);
    Ok(trace::open_with(path, &Options { progress: Some(&report), want, ..Options::default() })?)
}

/// Opens what is wanted, and builds the graph of the chosen rank.
pub fn step(path: &Path, choice: &Choice, want: Want) -> Result<Loaded, Failure> {
    let mut input = open(path, want)?;
    // Only an execution trace, only the Kineto trace with shapes, or times of a CPU: say so, or make do with it.
    if want != Want::ALL && !input.recordings.iter().any(is_timed) {
        input = open(path, Want::ALL)?;
    }
    of_recordings(path, input.recordings, choice)
}

fn of_recordings(path: &Path, recordings: Vec<Recording>, choice: &Choice) -> Result<Loaded, Failure> {
    let repairs: Vec<(PathBuf, Option<String>)> =
        recordings.iter().map(|r| (r.path.clone(), repairs(r))).collect();
    let step = Step::of_recordings(path, recordings, choice)?;
    let repairs = repairs.into_iter().find(|(path, _)| *path == step.path).and_then(|(_, words)| words);
    Ok(Loaded { step, repairs })
}

/// How many repairs reading took, and the first kind of them: of the times, and of the execution trace.
fn repairs(recording: &Recording) -> Option<String> {
    let ops = recording.execution.as_ref();
    // Times of a CPU are not looked at where there is an execution trace.
    let looked_at = ops.is_none() || is_timed(recording);
    let times = recording.timing.as_ref().or(timing(recording)).filter(|_| looked_at);
    let all = [times.map(|trace| &trace.notes), ops.map(|trace| &trace.notes)];
    let repaired = || all.into_iter().flatten().filter(|notes| notes.repairs() > 0);
    let count: u64 = repaired().map(|notes| notes.repairs()).sum();
    let (first, _) = repaired().next()?.iter().next()?;
    Some(format!("{count} repairs while reading: {first}"))
}

/// The recordings that paths stand for: a folder of recordings stands for all in it, by name.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let inner = if is_recording(path) { Vec::new() } else { within(path)? };
        if inner.is_empty() {
            all.push(path.clone());
        }
        all.extend(inner);
    }
    Ok(all)
}

fn is_recording(path: &Path) -> bool {
    path.join("meta.json").is_file()
}

fn within(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |source| format!("cannot read {}: {source}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_recording(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Opens several recordings side by side, in the order given.
pub fn recordings(paths: &[PathBuf], want: Want) -> Result<Vec<Loaded>, Failure> {
    each(paths, |path| {
        let options = Options { want, threads: 1, ..Options::default() };
        let mut input = trace::open_with(path, &options)?;
        if want != Want::ALL && !input.recordings.iter().any(is_timed) {
            input = trace::open_with(path, &Options { want: Want::ALL, ..options })?;
        }
        of_recordings(path, input.recordings, &Choice::default())
    })
}

/// Opens the execution traces of several recordings, and nothing else of them.
pub fn lone(paths: &[PathBuf]) -> Result<Vec<Loaded>, Failure> {
    let want = Want { timing: false, shaped: false, execution: true };
    each(paths, |path| {
        let options = Options { want, threads: 1, ..Options::default() };
        let mut recordings = trace::open_with(path, &options)?.recordings;
        for recording in &mut recordings {
            (recording.timing, recording.shaped) = (None, None);
        }
        of_recordings(path, recordings, &Choice::default())
    })
}

/// Opens the recordings that paths stand for side by side, in the order given.
fn each(
    paths: &[PathBuf],
    open: impl Fn(&Path) -> Result<Loaded, Failure> + Sync,
) -> Result<Vec<Loaded>, Failure> {
    let paths = expand(paths)?;
    let progress = Progress::recordings();
    let done = AtomicU64::new(0);
    let load = |path: &PathBuf| {
        let loaded = open(path);
        progress.report(done.fetch_add(1, Ordering::Relaxed) + 1, paths.len() as u64);
        loaded
    };
    paths.par_iter().map(load).collect::<Vec<_>>().into_iter().collect()
}
