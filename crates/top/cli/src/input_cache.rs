//! Inputs that are opened once and queried repeatedly.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use steptime_predict::{Choice, Step};

use crate::failure::Refusal;

/// An input that is opened at its first query, and not again.
#[derive(Debug)]
pub struct CachedInput {
    path: PathBuf,
    choice: Choice,
    step: OnceLock<Arc<Step>>,
}

impl CachedInput {
    /// Returns the input at a path, or a step or rank of it, without opening it.
    #[must_use]
    pub fn new(path: &Path, step: Option<u32>, rank: Option<u32>) -> CachedInput {
        CachedInput { path: path.into(), choice: Choice { step, rank }, step: OnceLock::new() }
    }

    /// Opens it now, with all parts that a query of its step may need: its files are not read again.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn open(&self) -> Result<(), Refusal> {
        if self.step.get().is_none() {
            let step = Step::open(&self.path, &self.choice);
            self.keep(step.map_err(|error| Refusal::from_failure(&error.into()))?);
        }
        Ok(())
    }

    /// Whether it is the input of this path and choice.
    pub(crate) fn is(&self, path: &Path, choice: &Choice) -> bool {
        path == self.path && *choice == self.choice
    }

    /// Returns its step; `None` if it is not open yet.
    pub(crate) fn step(&self) -> Option<Arc<Step>> {
        self.step.get().map(Arc::clone)
    }

    /// Keeps its opened step, unless there is one already; returns the kept one.
    pub(crate) fn keep(&self, step: Step) -> Arc<Step> {
        Arc::clone(self.step.get_or_init(|| Arc::new(step)))
    }
}
