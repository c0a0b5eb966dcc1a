//! Inputs that are opened once and queried repeatedly.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use steptime_predict::{Choice, Error, Step};
use steptime_trace::Want;

use crate::failure::Refusal;

/// An input that is opened at its first query, and not again.
#[derive(Debug)]
pub struct CachedInput {
    path: PathBuf,
    choice: Choice,
    whole: OnceLock<Arc<Step>>,
    without_shapes: OnceLock<Arc<Step>>,
}

/// Everything but the trace with shapes: the needs of a prediction without another GPU.
const WITHOUT_SHAPES: Want = Want { shaped: false, ..Want::ALL };

impl CachedInput {
    /// Returns the input at a path, or a step or rank of it, without opening it.
    #[must_use]
    pub fn new(path: &Path, step: Option<u32>, rank: Option<u32>) -> CachedInput {
        CachedInput {
            path: path.into(),
            choice: Choice { step, rank },
            whole: OnceLock::new(),
            without_shapes: OnceLock::new(),
        }
    }

    /// Opens it now, with all parts that a query may need: its files are not read again.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(&self) -> Result<(), Refusal> {
        for want in [Want::ALL, WITHOUT_SHAPES] {
            let opened = self.get(&self.path, &self.choice, want);
            opened.transpose().map_err(|error| Refusal::from_failure(&error.into()).in_python(None))?;
        }
        Ok(())
    }

    /// Returns the step, if this is the input and choice; opens it if needed.
    pub(crate) fn get(&self, path: &Path, choice: &Choice, want: Want) -> Option<Result<Arc<Step>, Error>> {
        if path != self.path || *choice != self.choice {
            return None;
        }
        let kept = match want {
            Want::ALL => &self.whole,
            WITHOUT_SHAPES => &self.without_shapes,
            _ => return None,
        };
        if let Some(step) = kept.get() {
            return Some(Ok(Arc::clone(step)));
        }
        let options = steptime_trace::Options { want, ..Default::default() };
        let opened = Step::open_with(path, choice, &options).map(Arc::new);
        Some(opened.map(|step| Arc::clone(kept.get_or_init(|| step))))
    }
}
