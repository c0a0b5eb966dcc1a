//! Files that are written whole or not at all, and never over something that is not a file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use steptime_predict::Error;

use super::temporary::Temporary;

/// Maximum length of a chain of links that is followed.
const MOST_LINKS: usize = 40;

/// Writes a temporary file in the same folder and moves it to its place when it is complete. A link is followed, an
/// existing file keeps its mode; a path that is not a file, such as a pipe, is written to directly.
pub fn write_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let written = || -> io::Result<()> {
        match Destination::find(path)? {
            Destination::Special(place) => write_through(&place, fill),
            Destination::File(place, before) => replace(&place, before.as_ref(), fill),
        }
    };
    written().map_err(|source| Error::Write { path: path.into(), source })
}

/// Checks before long work that its result can be written to a path.
///
/// # Errors
/// Those of [`write_file`], except for a disk that is full.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let checked = || -> io::Result<()> {
        match Destination::find(path)? {
            Destination::Special(_) => Ok(()),
            Destination::File(place, _) => Temporary::in_folder(folder_of(&place))?.discard(),
        }
    };
    checked().map_err(|source| Error::Write { path: path.into(), source })
}

/// Place of a file to write, its links resolved.
enum Destination {
    /// A path that is not a file: it is written to directly.
    Special(PathBuf),
    /// A file, and its present state, where it exists.
    File(PathBuf, Option<Metadata>),
}

impl Destination {
    /// Finds the place of a path.
    ///
    /// # Errors
    /// A folder, a file that is read-only, or a path in a folder that does not exist.
    fn find(path: &Path) -> io::Result<Destination> {
        let place = target(path)?;
        match fs::metadata(&place) {
            Ok(found) if is_special(&place, &found) => Ok(Destination::Special(place)),
            Ok(found) if found.is_dir() => Err(io::Error::other("it is a folder; give the name of a file")),
            Ok(found) if found.permissions().readonly() => {
                Err(io::Error::other("it is read-only; give another name, or make it writable (chmod u+w)"))
            }
            Ok(found) => Ok(Destination::File(place, Some(found))),
            Err(_) => {
                fs::metadata(folder_of(&place))?;
                Ok(Destination::File(place, None))
            }
        }
    }
}

/// Whether a path is neither a file nor a folder: a pipe, a terminal, or the program's own output under one of its names.
pub(super) fn is_special(place: &Path, found: &Metadata) -> bool {
    let own = ["/dev", "/proc"].iter().any(|root| place.starts_with(root));
    own || !(found.is_file() || found.is_dir())
}

/// Resolves the links of a path, whose target need not exist.
pub(super) fn target(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        // Names of the program's own output are links to unnamed files.
        let is_link = fs::symlink_metadata(&place).is_ok_and(|found| found.file_type().is_symlink());
        if !is_link || ["/dev", "/proc"].iter().any(|root| place.starts_with(root)) {
            return Ok(place);
        }
        let next = fs::read_link(&place)?;
        place = folder_of(&place).join(next);
    }
    Err(io::Error::other("its links lead in a circle"))
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_through(place: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out: BufWriter<File> = BufWriter::new(OpenOptions::new().write(true).open(place)?);
    fill(&mut out)?;
    out.flush()
}

fn replace(
    place: &Path,
    before: Option<&Metadata>,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = Temporary::in_folder(folder_of(place))?;
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Some(before) = before {
        file.as_file().set_permissions(before.permissions())?;
    }
    file.move_to(place)
}
