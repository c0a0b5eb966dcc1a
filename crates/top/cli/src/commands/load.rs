//! Opens inputs, with progress.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use steptime::trace::{Input, Options, Want};
use steptime::{Choice, Step, open_input};

use super::Failure;
use crate::console::Console;
use crate::progress::Progress;

/// Opens everything an input holds.
pub fn everything(path: &Path) -> Result<Input, Failure> {
    let progress = Progress::bytes();
    let report = |done, total| progress.report(done, total);
    Ok(open_input(path, &Options { progress: Some(&report), ..Options::default() })?)
}

/// Opens what is wanted, unless it is open already, and builds the graph of the chosen rank.
pub fn step(console: &Console<'_>, path: &Path, choice: &Choice, want: Want) -> Result<Arc<Step>, Failure> {
    match console.opened(path, choice, want) {
        Some(opened) => Ok(opened?),
        None => Ok(Arc::new(alone(path, choice, want)?)),
    }
}

/// Opens what is wanted, and builds the graph of the chosen rank.
pub fn alone(path: &Path, choice: &Choice, want: Want) -> Result<Step, Failure> {
    let progress = Progress::bytes();
    let report = |done, total| progress.report(done, total);
    let options = Options { progress: Some(&report), want, ..Options::default() };
    Ok(Step::open_with(path, choice, &options)?)
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
pub fn recordings(paths: &[PathBuf], want: Want) -> Result<Vec<Step>, Failure> {
    let options = Options { want, threads: 1, ..Options::default() };
    each(paths, |path| Ok(Step::open_with(path, &Choice::default(), &options)?))
}

/// Opens the execution traces of several recordings, and nothing else of them.
pub fn lone(paths: &[PathBuf]) -> Result<Vec<Step>, Failure> {
    let want = Want { timing: false, shaped: false, execution: true };
    each(paths, |path| {
        let options = Options { want, threads: 1, ..Options::default() };
        let mut recordings = open_input(path, &options)?.recordings;
        for recording in &mut recordings {
            (recording.timing, recording.shaped) = (None, None);
        }
        Ok(Step::of_recordings(path, recordings, &Choice::default())?)
    })
}

/// Opens the recordings that paths stand for side by side, in the order given.
fn each(
    paths: &[PathBuf],
    open: impl Fn(&Path) -> Result<Step, Failure> + Sync,
) -> Result<Vec<Step>, Failure> {
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
