//! Tar archives of traces.

use super::layout::looks_like_trace;
use super::pairing::LooseTraces;
use crate::byte_source::Stream;
use crate::document::{self, Plan};
use crate::error::Error;
use crate::progress::Progress;
use crate::source;
use std::path::{Path, PathBuf};

/// Reads every trace of an archive, one after the other, through a window.
pub(super) fn read(plan: Plan<'_>, progress: &Progress<'_>) -> Result<LooseTraces, Error> {
    let path = plan.path;
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    if source::is_lfs_pointer(&file) {
        return Err(Error::LfsPointer { path: path.to_owned() });
    }
    let bytes = source::bytes(file, progress).map_err(Error::io(path))?;
    let mut archive = tar::Archive::new(bytes);
    let mut found = LooseTraces::default();
    for entry in archive.entries().map_err(Error::io(path))? {
        let entry = entry.map_err(Error::io(path))?;
        let name = entry.path().map_err(Error::io(path))?.into_owned();
        if !entry.header().entry_type().is_file() || is_hidden(&name) || !looks_like_trace(&name) {
            continue;
        }
        let inner: PathBuf = path.join(&name);
        let reader = source::unpack(entry).map_err(Error::io(&inner))?;
        found.take(&inner, path, document::read(&mut Stream::new(reader), Plan { path: &inner, ..plan }))?;
    }
    Ok(found)
}

/// Archivers leave files such as `._name` behind.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}
