//! Options that name a file to write.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A file that a command writes. Every output of every command has this type: it separates outputs from inputs before
/// a command runs.
#[derive(Debug, Clone, Deserialize)]
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
