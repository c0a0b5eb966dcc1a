//! The step after a change as a file, in the format of its name's ending.

use std::path::Path;

use steptime_step::export::{Export, dot, execution, json};

use super::Failure;
use crate::output;

/// File format of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For Graphviz.
    Dot,
    /// For scripts.
    Json,
    /// For tools that read execution traces.
    ExecutionTrace,
}

impl Format {
    /// Returns the format of a file by the ending of its name.
    pub fn from_path(path: &Path) -> Result<Format, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match () {
            () if name.ends_with(".et.json") => Ok(Format::ExecutionTrace),
            () if name.ends_with(".json") => Ok(Format::Json),
            () if name.ends_with(".dot") => Ok(Format::Dot),
            () => Err(format!(
                "{}: --graph takes a name that ends in .dot (a picture for Graphviz), .json (for scripts) or .et.json \
                 (an execution trace)",
                path.display()
            )
            .into()),
        }
    }

    /// Writes a step, whole or not at all.
    pub fn write(self, path: &Path, export: &Export<'_>) -> Result<(), Failure> {
        if self == Format::ExecutionTrace && export.trace.is_none() {
            let name = path.display();
            return Err(format!(
                "{name}: the input has no execution trace, so the identity of tensors is not known; use another \
                format: .dot or .json"
            )
            .into());
        }
        let write = match self {
            Format::Dot => dot::write,
            Format::Json => json::write,
            Format::ExecutionTrace => execution::write,
        };
        Ok(output::write_file(path, |out| write(out, export))?)
    }
}
