//! Writing a dataset: aside first, then renamed whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::encode::{Block, EncodedColumn};
use crate::{Categorical, Error, FEATURES, Features, Splits};

/// Writes the rows of a dataset into a folder that gets its name when it is complete.
///
/// Until then the rows are in a hidden folder beside it, `.NAME.part-*`. It is removed if the writer is dropped; a process
/// that is killed leaves it, and it may be removed by hand.
#[derive(Debug)]
pub struct Writer {
    place: PathBuf,
    folder: TempDir,
    features: Features,
    label: Output,
    dense: Option<Output>,
    categorical: Vec<(Output, Option<Output>)>,
}

#[derive(Debug)]
struct Output {
    file: File,
    path: PathBuf,
}

impl Output {
    fn create(folder: &Path, name: &str) -> Result<Output, Error> {
        let path = folder.join(name);
        let file = File::create_new(&path).map_err(Error::io(&path))?;
        Ok(Output { file, path })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::io(&self.path))
    }

    fn close(self) -> Result<(), Error> {
        self.file.sync_all().map_err(Error::io(&self.path))
    }
}

impl Writer {
    /// Writer of a dataset at `place`, which must not exist or be an empty folder.
    ///
    /// # Errors
    ///
    /// If the place is occupied or cannot be written, or the description contradicts itself.
    pub fn create(place: &Path, features: Features) -> Result<Writer, Error> {
        is_free(place)?;
        if let Some(reason) = features.contradiction() {
            return Err(Error::Description { path: place.join(FEATURES), reason });
        }
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let folder = tempfile::Builder::new()
            .prefix(&format!(".{name}.part-"))
            .tempdir_in(parent)
            .map_err(Error::io(parent))?;
        let own = folder.path();
        let label = Output::create(own, &features.label.file)?;
        let dense = (!features.dense.columns.is_empty())
            .then(|| Output::create(own, &features.dense.file))
            .transpose()?;
        let column = |column: &Categorical| -> Result<_, Error> {
            let mut offsets = column.offsets.as_deref().map(|name| Output::create(own, name)).transpose()?;
            if let Some(offsets) = &mut offsets {
                offsets.write(&0_u64.to_le_bytes())?;
            }
            Ok((Output::create(own, &column.file)?, offsets))
        };
        let categorical = features.categorical.iter().map(column).collect::<Result<_, _>>()?;
        Ok(Writer { place: place.to_owned(), folder, features, label, dense, categorical })
    }

    /// Appends rows.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn append(&mut self, block: &Block) -> Result<(), Error> {
        self.label.write(&block.label)?;
        if let Some(dense) = &mut self.dense {
            dense.write(&block.dense)?;
        }
        let columns = self.categorical.iter_mut().zip(&mut self.features.categorical);
        for ((values, offsets), (described, encoded)) in columns
            .zip(&block.categorical)
            .map(|((output, described), encoded)| (output, (described, encoded)))
        {
            values.write(&encoded.values)?;
            if let (Some(offsets), Some(end)) = (offsets, &mut described.values) {
                offsets.write(&offset_bytes(encoded, end))?;
            }
        }
        self.features.rows += block.rows;
        Ok(())
    }

    /// Description with the rows so far.
    #[must_use]
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Number of appended rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.features.rows
    }

    /// Writes the description and gives the folder its name. The splits are ranges of the appended rows.
    ///
    /// # Errors
    ///
    /// If the splits are outside the rows, or the folder cannot be written or renamed.
    pub fn finish(mut self, splits: Splits) -> Result<Features, Error> {
        self.features.splits = splits;
        let path = self.folder.path().join(FEATURES);
        if let Some(reason) = self.features.contradiction() {
            return Err(Error::Description { path: self.place.join(FEATURES), reason });
        }
        self.label.close()?;
        self.dense.map_or(Ok(()), Output::close)?;
        for (values, offsets) in self.categorical {
            values.close()?;
            offsets.map_or(Ok(()), Output::close)?;
        }
        let text = toml::to_string(&self.features).map_err(|source| Error::Description {
            path: path.clone(),
            reason: format!("its text cannot be written: {source}"),
        })?;
        let mut description = Output::create(self.folder.path(), FEATURES)?;
        description.write(text.as_bytes())?;
        description.close()?;
        is_free(&self.place)?;
        place(self.folder, &self.place)?;
        Ok(self.features)
    }
}

/// Ends of the rows' values, as bytes; `end` is that of the last row so far.
fn offset_bytes(encoded: &EncodedColumn, end: &mut u64) -> Vec<u8> {
    let lengths = encoded.lengths.iter().flatten();
    lengths
        .flat_map(|&length| {
            *end += u64::from(length);
            end.to_le_bytes()
        })
        .collect()
}

/// Checks that nothing would be overwritten at the place of a new dataset.
pub(crate) fn is_free(place: &Path) -> Result<(), Error> {
    match fs::read_dir(place).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(Error::Exists { path: place.to_owned() }),
    }
}

/// Renames a complete folder to its place.
fn place(folder: TempDir, place: &Path) -> Result<(), Error> {
    open_to_others(folder.path())?;
    // Not every system replaces an empty folder; a folder that is not empty is not removed by this.
    let _ = fs::remove_dir(place);
    fs::rename(folder.path(), place).map_err(Error::io(place))?;
    // The old name does not exist anymore.
    let _ = folder.keep();
    sync(place)?;
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync)
}

/// Gives a folder the permissions of other new folders: temporary ones are closed to other users.
#[cfg(unix)]
fn open_to_others(folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).map_err(Error::io(folder))
}

#[cfg(not(unix))]
fn open_to_others(_folder: &Path) -> Result<(), Error> {
    Ok(())
}

#[cfg(unix)]
fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io(folder))
}

#[cfg(not(unix))]
fn sync(_folder: &Path) -> Result<(), Error> {
    Ok(())
}
