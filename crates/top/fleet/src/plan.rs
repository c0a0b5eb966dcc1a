//! The files to read, and the names of their runs.

use std::path::{Path, PathBuf};

use steptime_trace::{KinetoFile, kineto_files};

use crate::error::Error;

/// A part of the work, for several machines: every Nth piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of the part, from 1.
    pub part: u64,
    /// Number of parts.
    pub of: u64,
}

impl Shard {
    /// All of the work.
    pub const WHOLE: Shard = Shard { part: 1, of: 1 };
}

/// One file to read.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub path: PathBuf,
    /// Name of the run.
    pub run: String,
    /// Rank by the file name.
    pub rank: Option<u32>,
    /// Place among the files of the run, which is the rank if no other is known.
    pub place: u32,
    /// Length, bytes; 0 if it cannot be read.
    pub bytes: u64,
    /// Whether the name is that of a Kineto trace.
    pub named: bool,
    /// Whether the name is that of an archive.
    pub archive: bool,
}

/// Returns the runs with their names and files.
pub(crate) fn runs(paths: &[PathBuf], name: Option<&str>) -> Result<Vec<(String, Vec<KinetoFile>)>, Error> {
    if name.is_some() && paths.len() > 1 {
        return Err(Error::OneName(paths.len()));
    }
    let mut runs: Vec<(String, Vec<KinetoFile>)> = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        let name = match name {
            Some(name) => checked(name)?,
            None => named_after(path)?,
        };
        if let Some(first) = runs.iter().position(|(other, _)| *other == name) {
            let (first, second) = (paths[first].clone(), paths[at].clone());
            return Err(Error::SameName { first, second, name });
        }
        runs.push((name, kineto_files(path)?));
    }
    Ok(runs)
}

/// Returns the files of a shard: every Nth of all.
pub(crate) fn work(runs: &[(String, Vec<KinetoFile>)], shard: Shard) -> Vec<Work> {
    let of_run = |(run, files): &(String, Vec<KinetoFile>)| {
        let each = files.iter().enumerate().map(|(place, file)| Work {
            path: file.path.clone(),
            run: run.clone(),
            rank: file.rank,
            place: place as u32,
            bytes: std::fs::metadata(&file.path).map_or(0, |metadata| metadata.len()),
            named: file.named,
            archive: file.archive,
        });
        each.collect::<Vec<Work>>()
    };
    let all = runs.iter().flat_map(of_run);
    let every = usize::try_from(shard.of).unwrap_or(usize::MAX).max(1);
    let first = usize::try_from(shard.part.saturating_sub(1)).unwrap_or(usize::MAX);
    all.skip(first).step_by(every).collect()
}

fn is_fit(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

/// Name of a folder that means "no value" to readers of partitioned Parquet.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

fn checked(name: &str) -> Result<String, Error> {
    let fit = !name.is_empty() && name.len() <= 128 && !name.starts_with('.') && name.chars().all(is_fit);
    if fit && name != NO_VALUE { Ok(name.to_owned()) } else { Err(Error::Name(name.to_owned())) }
}

/// Returns the name of a folder, or of a file up to its first dot; letters that names may not have become `_`.
fn named_after(path: &Path) -> Result<String, Error> {
    let unread = |source| steptime_trace::Error::Io { path: path.to_owned(), source };
    let whole = std::fs::canonicalize(path).map_err(unread)?;
    let name = whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy();
    let name = if whole.is_dir() { &name } else { name.split('.').next().unwrap_or(&name) };
    let fit: String =
        name.chars().map(|letter| if is_fit(letter) { letter } else { '_' }).take(128).collect();
    checked(fit.trim_start_matches('.'))
}
