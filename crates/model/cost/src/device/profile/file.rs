//! A profile's folder on disk.

use std::path::Path;

use super::error::{ContentsError, HeaderError};
pub use super::format::{HEADER, MODELS};
use super::header::Header;
use super::{DeviceProfile, folder, models_file};
use crate::device::error::Error;

/// Longest `profile.toml` that is read, in bytes.
const LONGEST: u64 = 64 << 20;

impl DeviceProfile {
    /// Reads a profile: its folder, or the `profile.toml` in it.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another version, has an unknown field or an impossible value, is cut off or
    /// damaged, or does not belong to the other.
    pub fn read(path: &Path) -> Result<DeviceProfile, Error> {
        let is_folder = path.is_dir();
        let header_path = if is_folder { path.join(HEADER) } else { path.to_owned() };
        let unread = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Read { path, source }
        };
        if is_folder {
            steptime_trace::read_regular(&header_path, LONGEST).map_err(unread(&header_path))?;
        }
        let text = steptime_trace::read_text(&header_path, LONGEST).map_err(unread(&header_path))?;
        let models_path = header_path.with_file_name(MODELS);
        let bytes = folder::models(&header_path, &text).map_err(unread(&models_path))?;
        assemble(&text, bytes.as_deref(), &header_path, &models_path)
    }

    /// Makes a profile from the contents of the two files, for example if they are part of a program.
    ///
    /// # Errors
    ///
    /// Those of [`read`](DeviceProfile::read), with the usual names of the files.
    pub fn from_parts(header: &str, models: Option<&[u8]>) -> Result<DeviceProfile, Error> {
        assemble(header, models, Path::new(HEADER), Path::new(MODELS))
    }

    /// Returns the contents of the two files; no second one if nothing was fitted.
    ///
    /// # Errors
    ///
    /// A header that cannot be written.
    pub fn to_parts(&self) -> Result<(String, Option<Vec<u8>>), ContentsError> {
        let text = self.header().text()?;
        if self.models.is_empty() {
            return Ok((text, None));
        }
        let sealed = models_file::seal(&self.models, &text)?;
        Ok((text, Some(sealed)))
    }

    /// Writes the profile's folder. An existing profile is replaced, a folder with other content is not. Other
    /// files next to a profile stay. If the program ends during the write, the folder holds the old profile or the new
    /// one.
    ///
    /// # Errors
    ///
    /// A folder that cannot be written, or that holds something else.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let (text, bytes) = self.to_parts().map_err(|error| match error {
            ContentsError::Header(source) => Error::Header { path: folder.to_owned(), source },
            ContentsError::Models(source) => Error::Models { path: folder.to_owned(), source },
        })?;
        if !folder::is_free(folder) {
            return Err(Error::Taken { path: folder.to_owned() });
        }
        // The new files must be readable: an unreadable profile must never replace a good one.
        assemble(&text, bytes.as_deref(), Path::new(HEADER), Path::new(MODELS))
            .map_err(|source| Error::Unusable { path: folder.to_owned(), source: Box::new(source) })?;
        folder::replace(folder, &text, bytes.as_deref())
            .map_err(|source| Error::Write { path: folder.to_owned(), source })
    }
}

fn assemble(
    text: &str,
    bytes: Option<&[u8]>,
    header_path: &Path,
    models_path: &Path,
) -> Result<DeviceProfile, Error> {
    let refused = |source| Error::Header { path: header_path.to_owned(), source };
    let damaged = |source| Error::Models { path: models_path.to_owned(), source };
    let header = Header::parse(text).map_err(refused)?;
    let models = match bytes {
        // A specification next to models that do not belong to it is an error.
        Some(bytes) => models_file::unseal(bytes, text).map_err(damaged)?,
        None if header.families.is_empty() => Vec::new(),
        None => return Err(refused(HeaderError::NoModels)),
    };
    DeviceProfile::new(header, models).map_err(damaged)
}
