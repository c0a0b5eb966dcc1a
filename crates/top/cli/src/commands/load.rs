//! Opens inputs, with progress.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use steptime_eager::Model;
use steptime_predict::{Choice, RankSet, Step, described_input, is_timed, open_input, timing};
use steptime_trace::{Input, Options, Recording, Want};

use super::Failure;
use crate::console::Console;
use crate::progress::{self, Progress};

/// Opens all parts of an input.
pub fn everything(path: &Path) -> Result<Input, Failure> {
    parts(path, Want::ALL)
}

/// Whether an input may hold several ranks: a folder that is not itself a recording, an archive, or a description.
fn may_hold_ranks(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let archive = [".tar", ".tar.gz", ".tgz", ".zip"].iter().any(|ending| name.ends_with(ending));
    archive || is_description(path) || (path.is_dir() && !is_recording(path))
}

/// Reads the description of a model, for a command that takes no other input.
pub fn model(path: &Path) -> Result<Model, Failure> {
    if is_description(path) {
        return Ok(Model::read(path).map_err(steptime_predict::Error::from)?);
    }
    let place = path.display();
    Err(format!("{place}: not the description of a model, which is a file that ends in .toml; docs/src/models.md has its keys").into())
}

/// Whether a path is named like the description of a model.
pub fn is_description(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Contents of a path, for a prediction.
pub enum Opened {
    /// The ranks of a job.
    Ranks(RankSet),
    /// One step.
    Step(Arc<Step>),
}

impl Opened {
    /// Opens an input: the ranks of a job if it has several that share collectives and none of them, nor a step, was chosen;
    /// else one step. No file is read twice. Of a folder or an archive, the times are read first: ranks on their own GPUs need
    /// no ops. For another GPU (`retimed`) they do, unless the times have the shapes of ops.
    pub fn read(
        console: &Console<'_>,
        path: &Path,
        choice: &Choice,
        retimed: bool,
    ) -> Result<Opened, Failure> {
        let whole = *choice == Choice::default();
        if !whole || console.known(path, choice).is_some_and(|step| step.ranks == 1) {
            return Ok(Opened::Step(step(console, path, choice)?));
        }
        let mut input = if is_description(path) {
            let model = model(path)?;
            if model.gpus() > 1 {
                let ranks = || RankSet::from_model(path, &model);
                return Ok(Opened::Ranks(progress::spin("running ranks", ranks)?));
            }
            described_input(path, &model)
        } else {
            parts(path, if may_hold_ranks(path) { Want::TIMING } else { Want::STEP })?
        };
        if are_ranks(&mut input)? {
            if retimed && input.recordings.iter().any(lacks_shapes) {
                with_progress(Want::STEP, |options| Ok(input.read_rest(options)?))?;
            }
            let ranks = progress::spin("matching ranks", || RankSet::from_input(&input))?;
            if ranks.crew().share_collectives() {
                return Ok(Opened::Ranks(ranks));
            }
        }
        let step = with_progress(Want::STEP, |options| {
            input.read_rest(options)?;
            Step::from_input(&mut input, choice, options)
        })?;
        Ok(Opened::Step(console.keep(path, choice, step)))
    }
}

/// Whether an input has several ranks with times; if it has none with times, several with ops.
fn are_ranks(input: &mut Input) -> Result<bool, Failure> {
    let timed = |input: &Input| input.recordings.iter().filter(|recording| is_timed(recording)).count();
    if timed(input) > 0 {
        return Ok(timed(input) > 1);
    }
    with_progress(Want::ALL, |options| Ok(input.read_rest(options)?))?;
    Ok(input.recordings.iter().filter(|recording| recording.execution.is_some()).count() > 1)
}

/// Whether a recording has times without the shapes of ops.
fn lacks_shapes(recording: &Recording) -> bool {
    timing(recording).is_some_and(|trace| trace.inputs.is_empty())
}

/// Opens the wanted parts of an input.
fn parts(path: &Path, want: Want) -> Result<Input, Failure> {
    with_progress(want, |options| open_input(path, options))
}

/// Reads the wanted parts of an input, with progress.
fn with_progress<T>(
    want: Want,
    read: impl FnOnce(&Options<'_>) -> Result<T, steptime_predict::Error>,
) -> Result<T, Failure> {
    let progress = Progress::bytes();
    let report = |done, total| progress.report(done, total);
    Ok(read(&Options { progress: Some(&report), want, ..Options::default() })?)
}

/// Opens an input, unless it is open already, and builds the graph of the chosen rank.
pub fn step(console: &Console<'_>, path: &Path, choice: &Choice) -> Result<Arc<Step>, Failure> {
    match console.known(path, choice) {
        Some(step) => Ok(step),
        None => Ok(console.keep(path, choice, rank(path, choice, Want::STEP)?)),
    }
}

/// Opens the wanted parts of an input, and builds the graph of the chosen rank.
pub fn rank(path: &Path, choice: &Choice, want: Want) -> Result<Step, Failure> {
    with_progress(want, |options| Step::open_with(path, choice, options))
}

/// Expands paths to recordings: a folder of recordings becomes all recordings in it, by name.
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

/// Expands paths to jobs: folders of recordings named by rank, or folders of such folders; empty if all paths are single
/// recordings.
///
/// # Errors
/// If some paths are jobs and others are not.
pub fn jobs(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let (mut jobs, mut others) = (Vec::new(), Vec::new());
    for path in paths {
        let inner = match is_job(path) {
            true => vec![path.clone()],
            // A folder of single recordings is not a job.
            false if within(path)?.is_empty() => {
                folders(path).into_iter().filter(|path| is_job(path)).collect()
            }
            false => Vec::new(),
        };
        if inner.is_empty() {
            others.push(path);
        }
        jobs.extend(inner);
    }
    match (jobs.first(), others.first()) {
        (Some(job), Some(other)) => Err(format!(
            "{} holds the ranks of a job, {} does not: validate jobs and single recordings apart",
            job.display(),
            other.display()
        )
        .into()),
        _ => Ok(jobs),
    }
}

/// Whether a folder holds at least two recordings that are named by rank: `rank0`, `rank_1`.
fn is_job(folder: &Path) -> bool {
    let by_rank = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let number = name.strip_prefix("rank").map(|rest| rest.trim_start_matches(['_', '-']));
        number.is_some_and(|number| number.parse::<u32>().is_ok()) && is_recording(path)
    };
    folders(folder).iter().filter(|path| by_rank(path)).count() > 1
}

/// Returns the folders in a folder, by name; empty if it cannot be read.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    all.sort();
    all
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

/// Opens several recordings in parallel; the result has the order of the paths.
pub fn recordings(paths: &[PathBuf], want: Want) -> Result<Vec<Step>, Failure> {
    let options = Options { want, threads: 1, ..Options::default() };
    each(paths, |path| Ok(Step::open_with(path, &Choice::default(), &options)?))
}

/// Opens only the execution traces of several recordings.
pub fn execution_traces(paths: &[PathBuf]) -> Result<Vec<Step>, Failure> {
    let want = Want { timing: false, shaped: false, execution: true };
    each(paths, |path| {
        let options = Options { want, threads: 1, ..Options::default() };
        let mut recordings = open_input(path, &options)?.recordings;
        for recording in &mut recordings {
            (recording.timing, recording.shaped) = (None, None);
        }
        Ok(Step::from_recordings(path, &recordings, &Choice::default())?)
    })
}

/// Opens the recordings that paths expand to in parallel; the result has the order of the paths.
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
