//! Recordings of a path, and their contents.

use super::Meta;
use super::layout::{self, Role};
use crate::document::Document;
use crate::error::Error;
use crate::execution::ExecutionTrace;
use crate::kineto::Trace;
use std::path::{Path, PathBuf};

/// Recording of one rank.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Path of the file or folder.
    pub path: PathBuf,
    /// Name of the folder, or of the file without its extensions.
    pub name: String,
    /// Rank, from the trace, otherwise from the name.
    pub rank: Option<u32>,
    /// Contents of `meta.json`.
    pub meta: Option<Meta>,
    /// Several steps, for timing: `kineto.json`.
    pub timing: Option<Trace>,
    /// One step with shapes: `kineto_et.json`.
    pub shaped: Option<Trace>,
    /// Ops of that step: `et.json`.
    pub execution: Option<ExecutionTrace>,
}

/// Contents of a path.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Path that was opened.
    pub path: PathBuf,
    /// One recording, or one per rank, in rank order.
    pub recordings: Vec<Recording>,
    /// Files that look like traces by name but are not, and were not read.
    pub ignored: Vec<PathBuf>,
    /// Files with parts that were not wanted.
    pub(super) unread: Unread,
}

/// Files that were left out of an input because their parts were not wanted.
#[derive(Clone, Debug, Default)]
pub(super) enum Unread {
    /// All files were read.
    #[default]
    Nothing,
    /// The input itself, a single file of an unwanted kind.
    Single,
    /// Files of recordings in folders.
    Roles(Vec<RoleFile>),
    /// Loose files of an unwanted kind, and archives with entries of one.
    Loose(Vec<PathBuf>),
}

/// File of a recording in a folder.
#[derive(Clone, Debug)]
pub(super) struct RoleFile {
    /// Path of the recording.
    pub(super) folder: PathBuf,
    pub(super) role: Role,
    pub(super) path: PathBuf,
}

impl Input {
    /// Returns an input with recordings that come from no file.
    #[must_use]
    pub fn from_recordings(path: &Path, recordings: Vec<Recording>) -> Input {
        Input { path: path.to_owned(), recordings, ..Input::default() }
    }
}

impl Recording {
    /// Returns an empty recording, named after its path.
    pub(super) fn new(path: PathBuf) -> Recording {
        Recording { name: layout::stem(&path), path, ..Recording::default() }
    }

    /// Stores a document under its role.
    pub(super) fn place(&mut self, role: Role, document: Document, path: &Path) -> Result<(), Error> {
        match (role, document) {
            (Role::Execution, Document::Execution(trace)) => self.execution = Some(*trace),
            (Role::Timing, Document::Kineto(trace)) => self.timing = Some(*trace),
            (Role::Shaped, Document::Kineto(trace)) => self.shaped = Some(*trace),
            (_, document) => {
                let (found, wanted) = match document {
                    Document::Kineto(_) => ("a Kineto trace", "the execution trace that its name promises"),
                    Document::Execution(_) => {
                        ("an execution trace", "the Kineto trace that its name promises")
                    }
                };
                return Err(Error::WrongKind { path: path.to_owned(), found, wanted });
            }
        }
        Ok(())
    }
}
