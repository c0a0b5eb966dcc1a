//! Opens a path of any kind.

use super::layout::{self, Layout, Role};
use super::pairing::LooseTraces;
use super::recording::{Input, Recording};
use super::{Meta, archive, rank};
use crate::document::{Document, Kinds, Plan};
use crate::error::Error;
use crate::kineto::Trace;
use crate::progress::{Progress, Report};
use crate::{source, workers};
use std::path::{Path, PathBuf};

/// Files of a recording to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Whether to read `kineto.json`, and Kineto traces outside of recordings.
    pub timing: bool,
    /// Whether to read `kineto_et.json`.
    pub shaped: bool,
    /// Whether to read `et.json`, and execution traces outside of recordings.
    pub execution: bool,
}

impl Want {
    /// All files.
    pub const ALL: Want = Want { timing: true, shaped: true, execution: true };
    /// Only the timing trace.
    pub const TIMING: Want = Want { timing: true, shaped: false, execution: false };
}

/// Options of opening a path.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Called repeatedly with the bytes done and the total bytes.
    pub progress: Option<&'a Report<'a>>,
    /// Files to read; others are only read as far as needed to detect their kind.
    pub want: Want,
    /// Maximum number of threads; the result does not depend on it.
    pub threads: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { progress: None, want: Want::ALL, threads: workers::available() }
    }
}

/// Opens a trace file, a recording, a folder of one of either per rank, or a tar archive of traces.
///
/// # Errors
/// If there is no trace, or one of them cannot be read at all.
pub fn open(path: &Path) -> Result<Input, Error> {
    open_with(path, &Options::default())
}

/// Opens a path like [`open`], with options.
///
/// # Errors
/// If there is no trace, or one of them cannot be read at all.
pub fn open_with(path: &Path, options: &Options<'_>) -> Result<Input, Error> {
    let mut input = Input { path: path.to_owned(), ..Input::default() };
    if !path.is_dir() {
        if layout::is_archive(path) {
            input.loose(&[path.to_owned()], options)?;
        } else {
            input.recordings = processes(single(path, options)?);
        }
    } else {
        match Layout::read(path, &mut input.ignored)? {
            Layout::Recording(roles) => input.folders(&[(path.to_owned(), roles)], options)?,
            Layout::Recordings(folders) => input.folders(&folders, options)?,
            Layout::Loose(files) => input.loose(&files, options)?,
        }
    }
    input.recordings.sort_by(|one, two| {
        let key = |recording: &Recording| recording.rank.map_or(u64::MAX, u64::from);
        key(one).cmp(&key(two)).then_with(|| one.name.cmp(&two.name))
    });
    Ok(input)
}

impl Input {
    /// Reads recordings in folders, all their files in parallel.
    fn folders(
        &mut self,
        folders: &[(PathBuf, Vec<(Role, PathBuf)>)],
        options: &Options<'_>,
    ) -> Result<(), Error> {
        let wanted = |role: Role| match role {
            Role::Timing => options.want.timing,
            Role::Shaped => options.want.shaped,
            Role::Execution => options.want.execution,
            Role::Meta => false,
        };
        let mut work = Vec::new();
        for (index, (folder, roles)) in folders.iter().enumerate() {
            let mut recording = Recording::new(folder.clone());
            recording.name = name_of(folder);
            for (role, path) in roles {
                if *role == Role::Meta {
                    recording.meta = Some(Meta::open(path)?);
                } else if wanted(*role) {
                    work.push((index, *role, path.as_path()));
                }
            }
            self.recordings.push(recording);
        }
        let any = Kinds { kineto: true, execution: true };
        let documents = read_all(&work, |(.., path)| path, any, options, source::read);
        for ((index, role, path), document) in work.into_iter().zip(documents) {
            if let Some(document) = document? {
                self.recordings[index].place(role, document, path)?;
            }
        }
        for recording in &mut self.recordings {
            let own = [&recording.timing, &recording.shaped].into_iter().flatten().find_map(own_rank);
            recording.rank = own.or_else(|| rank::announced(&recording.name));
        }
        Ok(())
    }

    /// Reads loose files and archives, and pairs them by rank.
    fn loose(&mut self, files: &[PathBuf], options: &Options<'_>) -> Result<(), Error> {
        let wanted = Kinds { kineto: options.want.timing, execution: options.want.execution };
        let results = read_all(
            files,
            |path| path,
            wanted,
            options,
            |plan, progress| {
                if layout::is_archive(plan.path) {
                    return archive::read(plan, progress);
                }
                let mut found = LooseTraces::default();
                found.take(plan.path, source::read(plan, progress))?;
                Ok(found)
            },
        );
        let mut found = LooseTraces::default();
        for result in results {
            found.extend(result?);
        }
        self.ignored.append(&mut found.others);
        self.recordings = found.pair();
        let nothing_found = self.recordings.is_empty() && options.want.timing && options.want.execution;
        if nothing_found {
            return Err(Error::NoTraces { path: self.path.clone() });
        }
        Ok(())
    }
}

/// Reads a single trace file; next to a `meta.json` it is part of a recording, and uses that file.
fn single(path: &Path, options: &Options<'_>) -> Result<Recording, Error> {
    let wanted = Kinds { kineto: options.want.timing, execution: options.want.execution };
    let files = [path];
    let results = read_all(&files, |path| path, wanted, options, source::read);
    let mut recording = Recording::new(path.to_owned());
    for result in results {
        match result? {
            Some(Document::Kineto(trace)) => recording.timing = Some(*trace),
            Some(Document::Execution(trace)) => recording.execution = Some(*trace),
            None => {}
        }
    }
    recording.rank = recording.timing.as_ref().and_then(own_rank);
    let meta = path.with_file_name("meta.json");
    if layout::role(path).is_some() && meta.is_file() {
        recording.meta = Some(Meta::open(&meta)?);
    }
    Ok(recording)
}

/// Returns the recordings of the processes in one file, with ranks in the order of their process ids; usually there is one.
fn processes(recording: Recording) -> Vec<Recording> {
    let Some(traces) = recording.timing.as_ref().and_then(Trace::split_processes) else {
        return vec![recording];
    };
    let of_process = |(rank, timing): (usize, Trace)| Recording {
        rank: Some(rank as u32),
        timing: Some(timing),
        meta: recording.meta.clone(),
        ..Recording::new(recording.path.clone())
    };
    traces.into_iter().enumerate().map(of_process).collect()
}

/// Reads files in parallel; remaining threads are used within a file.
fn read_all<T: Sync, R: Send>(
    files: &[T],
    path: impl Fn(&T) -> &Path + Sync,
    wanted: Kinds,
    options: &Options<'_>,
    read: impl Fn(Plan<'_>, &Progress<'_>) -> R + Sync,
) -> Vec<R> {
    let size = |file: &T| std::fs::metadata(path(file)).map_or(0, |metadata| metadata.len());
    let progress = Progress::new(options.progress, files.iter().map(size).sum());
    let threads = (options.threads / files.len().max(1)).max(1);
    workers::map(files, options.threads, |file| read(Plan { path: path(file), wanted, threads }, &progress))
}

fn own_rank(trace: &Trace) -> Option<u32> {
    trace.distributed.as_ref().and_then(|distributed| distributed.rank)
}

/// Returns a folder's name, also for `.`.
fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}
