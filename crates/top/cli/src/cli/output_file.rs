//! An option that names a file to write.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A file that a command writes. Every output of every command is of this type: by it outputs are told from inputs before
/// a command runs.
#[derive(Debug, Clone)]
pub struct OutputFile(PathBuf);

impl From<OsString> for OutputFile {
    fn from(typed: OsString) -> OutputFile {
        OutputFile(typed.into())
    }
}

impl Deref for OutputFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}
