//! A file that is written aside, compressed by its name, and renamed when it is whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::Error;

/// Level of Zstandard.
const ZSTD_LEVEL: i32 = 9;

/// A file in writing. Without [`Output::finish`] nothing remains of it.
pub struct Output {
    path: PathBuf,
    partial: PathBuf,
    encoder: Option<Encoder>,
}

enum Encoder {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Output {
    /// Creates a file beside its place: `.json`, `.json.gz` or `.json.zst`.
    ///
    /// # Errors
    /// Where the folder is missing, the file cannot be written, or its name has another end.
    pub fn create(path: &Path) -> Result<Output, Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        if !stem.ends_with(".json") {
            let reason = format!("{}: name it .json, .json.gz or .json.zst", path.display());
            return Err(Error::Options(reason));
        }
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let mut aside = OsString::from(path);
        aside.push(".partial");
        let partial = PathBuf::from(aside);
        let file = BufWriter::new(File::create(&partial).map_err(failed)?);
        let mut output = Output { path: path.to_owned(), partial, encoder: None };
        output.encoder = Some(match name.rsplit('.').next() {
            Some("gz") => Encoder::Gzip(GzEncoder::new(file, Compression::default())),
            Some("zst") => Encoder::Zstd(zstd::Encoder::new(file, ZSTD_LEVEL).map_err(failed)?),
            _ => Encoder::Plain(file),
        });
        Ok(output)
    }

    /// An error of writing it.
    pub fn error(&self, source: io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }

    /// Completes the file, and gives it its name.
    ///
    /// # Errors
    /// Where it cannot be written or renamed.
    pub fn finish(mut self) -> Result<(), Error> {
        let done = match self.encoder.take() {
            Some(Encoder::Plain(file)) => Ok(file),
            Some(Encoder::Gzip(file)) => file.finish(),
            Some(Encoder::Zstd(file)) => file.finish(),
            None => return Ok(()),
        };
        let closed = done.and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        closed.and_then(|_| fs::rename(&self.partial, &self.path)).map_err(|source| self.error(source))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Some(Encoder::Plain(file)) => file.write(bytes),
            Some(Encoder::Gzip(file)) => file.write(bytes),
            Some(Encoder::Zstd(file)) => file.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Some(Encoder::Plain(file)) => file.flush(),
            Some(Encoder::Gzip(file)) => file.flush(),
            Some(Encoder::Zstd(file)) => file.flush(),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // After the rename there is none.
        let _ = fs::remove_file(&self.partial);
    }
}
