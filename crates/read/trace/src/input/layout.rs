//! Roles of the files in a folder.

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Role of a file in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// `kineto.json`: several steps, for timing.
    Timing,
    /// `kineto_et.json`: one step, with shapes.
    Shaped,
    /// `et.json`: the execution trace of that step.
    Execution,
    /// `meta.json`.
    Meta,
}

/// Layout of a folder.
#[derive(Debug)]
pub(super) enum Layout {
    /// Single recording.
    Recording(Vec<(Role, PathBuf)>),
    /// Folder of recordings, or of one recording per rank.
    Recordings(Vec<(PathBuf, Vec<(Role, PathBuf)>)>),
    /// Loose traces and archives, one or two per rank.
    Loose(Vec<PathBuf>),
}

/// Contents of a folder by kind.
#[derive(Debug, Default)]
struct FolderEntries {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Neither files nor folders: pipes, devices, dangling links. Reading one may never end.
    others: Vec<PathBuf>,
}

impl Layout {
    /// Inspects a folder, and one level of folders inside. Adds entries that look like a trace by name but are not files to
    /// `ignored`.
    pub(super) fn read(folder: &Path, ignored: &mut Vec<PathBuf>) -> Result<Layout, Error> {
        let FolderEntries { mut files, folders, others } = list(folder)?;
        let mut leave_out = |others: Vec<PathBuf>| {
            ignored.extend(others.into_iter().filter(|other| looks_like_trace(other)));
        };
        leave_out(others);
        let roles = roles(&files)?;
        if !roles.is_empty() {
            return Ok(Layout::Recording(roles));
        }
        let mut recordings = Vec::new();
        let mut nested = Vec::new();
        for inner in folders {
            let FolderEntries { files: inner_files, others, .. } = list(&inner)?;
            leave_out(others);
            let roles = self::roles(&inner_files)?;
            if roles.is_empty() {
                nested.extend(inner_files);
            } else {
                recordings.push((inner, roles));
            }
        }
        if !recordings.is_empty() {
            return Ok(Layout::Recordings(recordings));
        }
        files.extend(nested);
        files.retain(|file| looks_like_trace(file));
        match files.is_empty() {
            true => Err(Error::NoTraces { path: folder.to_owned() }),
            false => Ok(Layout::Loose(files)),
        }
    }
}

/// Returns the role of a file by its name.
pub(super) fn role(path: &Path) -> Option<Role> {
    let name = path.file_name()?.to_str()?;
    match name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name) {
        "kineto.json" => Some(Role::Timing),
        "kineto_et.json" => Some(Role::Shaped),
        "et.json" => Some(Role::Execution),
        "meta.json" => Some(Role::Meta),
        _ => None,
    }
}

/// Returns a name without the extensions of traces and archives: `dlrm_eg_5` for `dlrm_eg_5.json.gz`.
pub(super) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let mut stem: &str = &name;
    for extension in [".gz", ".zst", ".tgz", ".tar", ".sqlite", ".json", ".trace", ".pt"] {
        stem = stem.strip_suffix(extension).unwrap_or(stem);
    }
    stem.to_owned()
}

/// Whether a name is that of a tar archive.
pub(super) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.ends_with(".tgz")
        || name.ends_with(".tar")
        || name.ends_with(".tar.gz")
        || name.ends_with(".tar.zst")
}

/// Whether a name is that of a trace or of an archive.
pub(super) fn looks_like_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    is_archive(path)
        || [".json", ".json.gz", ".json.zst", ".sqlite"].iter().any(|extension| name.ends_with(extension))
}

/// Returns the files of a recording; empty if there is no trace among them.
fn roles(files: &[PathBuf]) -> Result<Vec<(Role, PathBuf)>, Error> {
    let mut found: Vec<(Role, PathBuf)> = Vec::new();
    for file in files {
        let Some(role) = role(file) else { continue };
        if let Some((_, first)) = found.iter().find(|(other, _)| *other == role) {
            let what = format!("the {} of this recording", stem(file));
            return Err(Error::Ambiguous { first: first.clone(), second: file.clone(), what });
        }
        found.push((role, file.clone()));
    }
    let any_trace = found.iter().any(|(role, _)| *role != Role::Meta);
    Ok(if any_trace { found } else { Vec::new() })
}

/// Lists the entries of a folder by name, except hidden ones.
fn list(folder: &Path) -> Result<FolderEntries, Error> {
    let mut listed = FolderEntries::default();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let found = fs::metadata(&path);
        match found {
            _ if hidden => {}
            Ok(found) if found.is_dir() => listed.folders.push(path),
            Ok(found) if found.is_file() => listed.files.push(path),
            _ => listed.others.push(path),
        }
    }
    listed.files.sort();
    listed.folders.sort();
    listed.others.sort();
    Ok(listed)
}
