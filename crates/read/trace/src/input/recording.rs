//! What a path holds: recordings, and what is in each.

use super::Meta;
use super::layout::{self, Role};
use crate::document::Document;
use crate::error::Error;
use crate::execution::ExecutionTrace;
use crate::kineto::Trace;
use std::path::{Path, PathBuf};

/// What was recorded of one rank.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The file or folder.
    pub path: PathBuf,
    /// The folder's name, or the file's without its extensions.
    pub name: String,
    /// The rank, by the trace, else by the name.
    pub rank: Option<u32>,
    /// `meta.json`.
    pub meta: Option<Meta>,
    /// Several steps, for timing: `kineto.json`.
    pub timing: Option<Trace>,
    /// One step with shapes: `kineto_et.json`.
    pub shaped: Option<Trace>,
    /// The ops of that step: `et.json`.
    pub execution: Option<ExecutionTrace>,
}

/// What a path holds.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The path that was opened.
    pub path: PathBuf,
    /// One recording, or one a rank, by rank.
    pub recordings: Vec<Recording>,
    /// Files that look like traces by name but are none, and were left out.
    pub ignored: Vec<PathBuf>,
}

impl Recording {
    /// An empty recording, named after its path.
    pub(super) fn new(path: PathBuf) -> Recording {
        Recording { name: layout::stem(&path), path, ..Recording::default() }
    }

    /// Files a document under its role.
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
