//! Kineto files of a path, found by their names alone.

use super::layout::{self, Layout, Role};
use super::rank;
use crate::error::Error;
use std::path::{Path, PathBuf};

/// File that should be a Kineto trace; it was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KinetoFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Rank from its name or its folder's name; the rank in the trace itself takes precedence.
    pub rank: Option<u32>,
    /// Whether its name is that of a Kineto trace, `kineto.json.gz`. Other files may be of another kind.
    pub named: bool,
    /// Whether its name is that of an archive of traces.
    pub archive: bool,
}

/// Returns the Kineto files of a path, one per rank as far as names show, without reading them: the file itself, the timed
/// trace of each recording, or all files that look like traces. Archives are included.
///
/// # Errors
/// If the folder cannot be read, or contains nothing that looks like a trace.
pub fn kineto_files(path: &Path) -> Result<Vec<KinetoFile>, Error> {
    if !path.is_dir() {
        std::fs::metadata(path).map_err(Error::io(path))?;
        return Ok(loose(vec![path.to_owned()]));
    }
    let folders = match Layout::read(path, &mut Vec::new())? {
        Layout::Recording(roles) => vec![(path.to_owned(), roles)],
        Layout::Recordings(folders) => folders,
        Layout::Loose(files) => return Ok(loose(files)),
    };
    let several = folders.len() > 1;
    let mut found = Vec::new();
    for (folder, roles) in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let rank = if several { rank::announced(&name) } else { None };
        let timed = roles.into_iter().filter(|(role, _)| *role == Role::Timing);
        found.extend(timed.map(|(_, path)| KinetoFile { path, rank, named: true, archive: false }));
    }
    match found.is_empty() {
        true => Err(Error::NoTraces { path: path.to_owned() }),
        false => Ok(found),
    }
}

/// Returns loose files: their ranks are in their names, or are the trailing numbers if these count from 0 or 1.
fn loose(files: Vec<PathBuf>) -> Vec<KinetoFile> {
    let stems: Vec<String> = files.iter().map(|file| layout::stem(file)).collect();
    let numbered = files.len() > 1 && rank::numbered(stems.iter().map(String::as_str));
    let rank = |stem: &str| rank::announced(stem).or_else(|| rank::trailing(stem).filter(|_| numbered));
    let each = files.into_iter().zip(&stems);
    let file = |(path, stem): (PathBuf, &String)| {
        let archive = layout::is_archive(&path);
        KinetoFile { path, rank: rank(stem), named: false, archive }
    };
    each.map(file).collect()
}
