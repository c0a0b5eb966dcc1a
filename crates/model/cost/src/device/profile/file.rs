//! A profile's folder on disk.

use std::path::Path;

use super::error::{ContentsError, HeaderError};
pub use super::format::{HEADER, MODELS};
use super::header::Header;
use super::{DeviceProfile, folder, sealed};
use crate::device::error::Error;

/// The longest readable file that is read.
const LONGEST: u64 = 64 << 20;

impl DeviceProfile {
    /// Reads a profile: its folder, or the `profile.toml` in it.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another version, has a field that is not known or cannot be, is cut off or
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

    /// From the contents of the two files, as where they are part of a program.
    ///
    /// # Errors
    ///
    /// As [`read`](DeviceProfile::read), naming the files by their usual names.
    pub fn from_parts(header: &str, models: Option<&[u8]>) -> Result<DeviceProfile, Error> {
        assemble(header, models, Path::new(HEADER), Path::new(MODELS))
    }

    /// The contents of the two files; no second one where nothing was fitted.
    ///
    /// # Errors
    ///
    /// A header that cannot be written.
    pub fn to_parts(&self) -> Result<(String, Option<Vec<u8>>), ContentsError> {
        let text = self.header().text()?;
        if self.models.is_empty() {
            return Ok((text, None));
        }
        let sealed = sealed::seal(&self.models, &text)?;
        Ok((text, Some(sealed)))
    }

    /// Writes the profile's folder. A profile that is there already is replaced, a folder of anything else is not. What
    /// else lies beside a profile stays. Should the program end meanwhile, the folder holds the old profile or the new
    /// one.
    ///
    /// # Errors
    ///
    /// A place that cannot be written, or that holds something else.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let (text, bytes) = self.to_parts().map_err(|error| match error {
            ContentsError::Header(source) => Error::Header { path: folder.to_owned(), source },
            ContentsError::Models(source) => Error::Models { path: folder.to_owned(), source },
        })?;
        if !folder::is_free(folder) {
            return Err(Error::Taken { path: folder.to_owned() });
        }
        // What is written must be read again: nothing is worse than a profile that was replaced by one that is none.
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
        // A specification beside models that are none of its own is a mistake worth telling.
        Some(bytes) => sealed::unseal(bytes, text).map_err(damaged)?,
        None if header.families.is_empty() => Vec::new(),
        None => return Err(refused(HeaderError::NoModels)),
    };
    DeviceProfile::new(header, models).map_err(damaged)
}
