//! Models: a description in TOML, and how each runs.

mod check;
mod dlrm;
mod file;
mod interaction;
mod layers;
mod network;
mod script;
mod two_towers;
mod wide;

use std::path::Path;

use steptime_trace::ExecutionTrace;

use self::file::Description;
use crate::error::{Error, Problem};

/// A model and how it is trained: all that a step takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    description: Description,
}

impl Model {
    /// Reads a description.
    ///
    /// # Errors
    /// Where the file cannot be read, or describes no model.
    pub fn read(path: &Path) -> Result<Model, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
        Model::parse(&text).map_err(|source| Error::Description { path: path.into(), source })
    }

    /// Reads the text of a description.
    ///
    /// # Errors
    /// Where it describes no model.
    pub fn parse(text: &str) -> Result<Model, Problem> {
        let description = file::parse(text)?;
        check::check(&description)?;
        Ok(Model { description })
    }

    /// Samples a step.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.description.batch as u64
    }

    /// What it is called, where the description says.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.description.name.as_deref()
    }

    /// How many parameters it has.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        script::parameters(&self.description)
    }

    /// The step that PyTorch eager would have recorded.
    #[must_use]
    pub fn record(&self) -> ExecutionTrace {
        script::record(&self.description)
    }
}
