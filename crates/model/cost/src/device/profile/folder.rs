//! Replaces the two files of a profile so that a reader finds the old profile or the new one, never a mixture.
//!
//! Two files cannot be renamed at once. The new models are written first, under a temporary name. Then the new header
//! replaces the old one, which makes the new profile the valid one. Last, the models are renamed. A reader
//! that finds models of another header looks for new ones under the temporary name.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use super::format::{HEADER, MODELS};
use super::models_file::belong;

/// Name of the header until it is complete.
const NEXT_HEADER: &str = "profile.toml.next";
/// Name of the models until their header is in place. The file is empty if the new profile has none.
const NEXT_MODELS: &str = "models.bin.zst.next";

/// Returns the models next to a header of the given text; `None` if there are none.
///
/// # Errors
///
/// An existing file that cannot be read.
pub fn models(header_path: &Path, text: &str) -> io::Result<Option<Vec<u8>>> {
    let in_place = read(&header_path.with_file_name(MODELS))?;
    if in_place.as_ref().is_some_and(|bytes| belong(bytes, text)) {
        return Ok(in_place);
    }
    match read(&header_path.with_file_name(NEXT_MODELS))? {
        Some(next) if belong(&next, text) => Ok(Some(next)),
        Some(next) if next.is_empty() && !has_families(text) => Ok(None),
        _ => Ok(in_place),
    }
}

/// Whether a profile may be written to a folder: it does not exist, or holds a profile, or the rest of an unfinished one.
pub fn is_free(folder: &Path) -> bool {
    if !folder.exists() || folder.join(HEADER).is_file() {
        return true;
    }
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten().peekable();
    let unfinished = |name: &str| name == NEXT_HEADER || name == NEXT_MODELS;
    entries.peek().is_some() && entries.all(|entry| entry.file_name().to_str().is_some_and(unfinished))
}

/// Replaces the header and the models of the folder.
///
/// # Errors
///
/// A file that cannot be written. The folder then keeps its content.
pub fn replace(folder: &Path, text: &str, models: Option<&[u8]>) -> io::Result<()> {
    let is_new = !folder.exists();
    fs::create_dir_all(folder)?;
    // Writers of one profile take turns, if the system can lock a folder.
    let _turn = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    settle(folder)?;
    let [header, next_header] = [HEADER, NEXT_HEADER].map(|name| folder.join(name));
    let next_models = folder.join(NEXT_MODELS);
    let written = write(&next_models, models.unwrap_or_default())
        .and_then(|()| write(&next_header, text.as_bytes()))
        .and_then(|()| fs::rename(&next_header, &header));
    if let Err(error) = written {
        let _ = fs::remove_file(&next_header);
        let _ = fs::remove_file(&next_models);
        if is_new {
            let _ = fs::remove_dir(folder);
        }
        return Err(error);
    }
    settle(folder)
}

/// Finishes an interrupted write: models of the header in place are renamed, others are removed.
fn settle(folder: &Path) -> io::Result<()> {
    let [header, models, next] = [HEADER, MODELS, NEXT_MODELS].map(|name| folder.join(name));
    let Some(bytes) = read(&next)? else { return Ok(()) };
    let text = read(&header)?.and_then(|text| String::from_utf8(text).ok());
    match text {
        Some(text) if belong(&bytes, &text) => fs::rename(&next, &models),
        Some(text) if bytes.is_empty() && !has_families(&text) => {
            if models.exists() {
                fs::remove_file(&models)?;
            }
            fs::remove_file(&next)
        }
        _ => fs::remove_file(&next),
    }
}

/// Whether a header lists fitted families, which have models.
fn has_families(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "[[family]]")
}

/// Longest file of models that is read, in bytes.
const LONGEST: u64 = 256 << 20;

/// Returns the bytes of a file; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match steptime_trace::read_regular(path, LONGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file, and waits until it is on the disk.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
