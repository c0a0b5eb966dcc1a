//! The folder of a run's checkpoints.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Checkpoint, CheckpointError};

/// End of the name of a checkpoint that is being written.
pub(super) const PARTIAL: &str = ".partial";
/// End of the name of a checkpoint that is being removed.
pub(super) const REMOVED: &str = ".removed";
const PREFIX: &str = "step-";

/// Place of the checkpoint of a step.
pub(super) fn place(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{step:012}"))
}

/// A path with another end.
pub(super) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Steps and folders of all whole checkpoints, in order of the step; none if the folder does not exist.
///
/// # Errors
///
/// The folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, CheckpointError> {
    let mut checkpoints = Vec::new();
    for (name, path) in entries(folder)? {
        let step =
            name.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        checkpoints.extend(step.and_then(|digits| digits.parse().ok()).map(|step| (step, path)));
    }
    checkpoints.sort_unstable();
    Ok(checkpoints)
}

/// Opens the checkpoint of the highest step and verifies it; `None` if there is none.
///
/// # Errors
///
/// The folder cannot be read; that checkpoint is damaged. An earlier one is not used without the caller's knowledge:
/// [`list`] has them.
pub fn newest(folder: &Path) -> Result<Option<Checkpoint>, CheckpointError> {
    list(folder)?.last().map(|(_, path)| Checkpoint::open(path)).transpose()
}

/// Folders that an ended process left behind: partly written, or partly removed.
pub(super) fn leftovers(folder: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let left = |name: &str| name.starts_with(PREFIX) && (name.ends_with(PARTIAL) || name.ends_with(REMOVED));
    Ok(entries(folder)?.into_iter().filter(|(name, _)| left(name)).map(|(_, path)| path).collect())
}

fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, CheckpointError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(CheckpointError::io("list", folder))?,
    };
    let named = entries.map(|entry| {
        let entry = entry.map_err(CheckpointError::io("list", folder))?;
        Ok((entry.file_name().to_string_lossy().into_owned(), entry.path()))
    });
    named.collect()
}
