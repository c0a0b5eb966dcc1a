//! Opens a path of any kind.

use super::layout::{self, Layout, Role};
use super::pairing::LooseTraces;
use super::recording::{Input, Recording, RoleFile, Unread};
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
    /// Times and ops of a step. The trace with shapes is left out: the execution trace has the shapes too.
    pub const STEP: Want = Want { timing: true, shaped: false, execution: true };

    /// Returns the kinds of traces outside of recordings.
    fn kinds(self) -> Kinds {
        Kinds { kineto: self.timing, execution: self.execution }
    }
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

/// Opens a path like [`open`], with options. [`Input::read_rest`] reads parts that they leave out.
///
/// # Errors
/// If there is no trace, or one of them cannot be read at all.
pub fn open_with(path: &Path, options: &Options<'_>) -> Result<Input, Error> {
    let mut input = Input { path: path.to_owned(), ..Input::default() };
    if !path.is_dir() {
        if layout::is_archive(path) {
            input.loose(vec![path.to_owned()], options)?;
        } else {
            input.single(options)?;
        }
    } else {
        match Layout::read(path, &mut input.ignored)? {
            Layout::Recording(roles) => input.folders(vec![(path.to_owned(), roles)], options)?,
            Layout::Recordings(folders) => input.folders(folders, options)?,
            Layout::Loose(files) => input.loose(files, options)?,
        }
    }
    input.sort();
    Ok(input)
}

impl Input {
    /// Reads the wanted files that were left out so far. A file that was read is not opened again. A loose file was opened
    /// before, but only read as far as needed to detect its kind.
    ///
    /// # Errors
    /// If there is no trace, or one of the files cannot be read at all.
    pub fn read_rest(&mut self, options: &Options<'_>) -> Result<(), Error> {
        match std::mem::take(&mut self.unread) {
            Unread::Roles(files) => self.roles(files, options)?,
            Unread::Loose(files) => self.loose(files, options)?,
            Unread::Single => self.single(options)?,
            Unread::Nothing => return Ok(()),
        }
        self.sort();
        Ok(())
    }

    fn sort(&mut self) {
        self.recordings.sort_by(|one, two| {
            let key = |recording: &Recording| recording.rank.map_or(u64::MAX, u64::from);
            key(one).cmp(&key(two)).then_with(|| one.name.cmp(&two.name))
        });
    }

    /// Opens recordings in folders.
    fn folders(
        &mut self,
        folders: Vec<(PathBuf, Vec<(Role, PathBuf)>)>,
        options: &Options<'_>,
    ) -> Result<(), Error> {
        let mut files = Vec::new();
        for (folder, roles) in folders {
            let mut recording = Recording::new(folder.clone());
            recording.name = name_of(&folder);
            for (role, path) in roles {
                match role {
                    Role::Meta => recording.meta = Some(Meta::open(&path)?),
                    _ => files.push(RoleFile { folder: folder.clone(), role, path }),
                }
            }
            self.recordings.push(recording);
        }
        self.roles(files, options)
    }

    /// Reads the wanted ones of these files in parallel.
    fn roles(&mut self, files: Vec<RoleFile>, options: &Options<'_>) -> Result<(), Error> {
        let wanted = |file: &RoleFile| match file.role {
            Role::Timing => options.want.timing,
            Role::Shaped => options.want.shaped,
            Role::Execution => options.want.execution,
            Role::Meta => false,
        };
        let (work, rest): (Vec<RoleFile>, Vec<RoleFile>) = files.into_iter().partition(wanted);
        let any = Kinds { kineto: true, execution: true };
        let documents = read_all(&work, |file| file.path.as_path(), any, options, source::read);
        for (file, document) in work.iter().zip(documents) {
            let place = self.recordings.iter_mut().find(|recording| recording.path == file.folder);
            if let (Some(document), Some(recording)) = (document?, place) {
                recording.place(file.role, document, &file.path)?;
            }
        }
        for recording in &mut self.recordings {
            let own = [&recording.timing, &recording.shaped].into_iter().flatten().find_map(own_rank);
            recording.rank = own.or_else(|| rank::announced(&recording.name));
        }
        if !rest.is_empty() {
            self.unread = Unread::Roles(rest);
        }
        Ok(())
    }

    /// Reads loose files and archives, and pairs all that were read so far by rank. An archive is a stream: for entries that
    /// were left out it is read again.
    fn loose(&mut self, files: Vec<PathBuf>, options: &Options<'_>) -> Result<(), Error> {
        let mut found = LooseTraces::from_recordings(std::mem::take(&mut self.recordings));
        let wanted = found.missing(options.want.kinds());
        if !wanted.kineto && !wanted.execution {
            self.unread = Unread::Loose(files);
            self.recordings = found.pair();
            return Ok(());
        }
        let complete = found.is_complete_with(wanted);
        let results = read_all(
            &files,
            |path| path,
            wanted,
            options,
            |plan, progress| {
                if layout::is_archive(plan.path) {
                    return archive::read(plan, progress);
                }
                let mut found = LooseTraces::default();
                found.take(plan.path, plan.path, source::read(plan, progress))?;
                Ok(found)
            },
        );
        for result in results {
            found.extend(result?);
        }
        self.ignored.append(&mut found.others);
        if !complete && !found.unwanted.is_empty() {
            self.unread = Unread::Loose(std::mem::take(&mut found.unwanted));
        }
        self.recordings = found.pair();
        let nothing_found = self.recordings.is_empty() && matches!(self.unread, Unread::Nothing);
        if nothing_found {
            return Err(Error::NoTraces { path: self.path.clone() });
        }
        Ok(())
    }

    /// Reads a single trace file; next to a `meta.json` it is part of a recording, and uses that file. Processes in one file
    /// have ranks in the order of their process ids; usually there is one.
    fn single(&mut self, options: &Options<'_>) -> Result<(), Error> {
        let wanted = options.want.kinds();
        let files = [self.path.clone()];
        let results = read_all(&files, |path| path, wanted, options, source::read);
        let mut recording = Recording::new(self.path.clone());
        for result in results {
            match result? {
                Some(Document::Kineto(trace)) => recording.timing = Some(*trace),
                Some(Document::Execution(trace)) => recording.execution = Some(*trace),
                None => self.unread = Unread::Single,
            }
        }
        recording.rank = recording.timing.as_ref().and_then(own_rank);
        let meta = self.path.with_file_name("meta.json");
        let known = self.recordings.pop().and_then(|recording| recording.meta);
        if known.is_some() {
            recording.meta = known;
        } else if layout::role(&self.path).is_some() && meta.is_file() {
            recording.meta = Some(Meta::open(&meta)?);
        }
        self.recordings = processes(recording);
        Ok(())
    }
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
