//! Options and reports of conversions.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::DamagedRow;
use crate::{DenseType, Error, Features, IdRule, Transform};

/// Options of a conversion.
#[derive(Clone)]
pub struct ConvertOptions {
    /// Rule from categories to indices. `Planted` is not possible.
    pub ids: IdRule,
    /// Rows for validation.
    pub validation: Validation,
    /// Type of the stored dense values.
    pub dense: DenseType,
    /// Function of dense values before they are stored. A missing value is 0 before it.
    pub transform: Transform,
    /// Number of threads, at least 1. The result does not depend on it.
    pub threads: usize,
    /// Limit of the memory for categories and rows in bytes, at least 16 MB. Half of it is for counts; more are kept on
    /// disk. Six tenths are for the ids of frequent categories; more are an error.
    pub memory: u64,
    /// Folder for counts that do not fit in memory; otherwise the folder of the dataset.
    pub temporary: Option<PathBuf>,
    /// Function that is called after each part of the input, for a display of progress.
    pub progress: Option<Arc<ProgressFn>>,
}

/// A function that displays progress. Calls come from any thread, one at a time.
pub type ProgressFn = dyn Fn(&Progress) + Send + Sync;

/// Progress of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Name of the pass: `count` or `rows`.
    pub pass: &'static str,
    /// Position of the current file among the inputs, from 0.
    pub file: usize,
    /// Bytes of uncompressed input so far, in this pass.
    pub bytes: u64,
    /// Valid rows so far, in this pass.
    pub rows: u64,
}

impl fmt::Debug for ConvertOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConvertOptions")
            .field("ids", &self.ids)
            .field("validation", &self.validation)
            .field("dense", &self.dense)
            .field("transform", &self.transform)
            .field("threads", &self.threads)
            .field("memory", &self.memory)
            .field("temporary", &self.temporary)
            .finish_non_exhaustive()
    }
}

impl ConvertOptions {
    /// Logarithms in `f32`, the last tenth for validation, 1 GB of memory, a thread for each core.
    #[must_use]
    pub fn new(ids: IdRule) -> ConvertOptions {
        ConvertOptions {
            ids,
            validation: Validation::Fraction(0.1),
            dense: DenseType::F32,
            transform: Transform::Log1p,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: 1_000_000_000,
            temporary: None,
            progress: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        Error::option("number of threads", self.threads as u64, 1..1 << 16, "choose from 1 to 65535")?;
        Error::option("memory limit", self.memory, 16_000_000..u64::MAX, "choose at least 16 MB")?;
        match self.ids {
            IdRule::Frequency { threshold } => {
                Error::option("frequency threshold", threshold.into(), 1..1 << 32, "choose at least 1")?;
            }
            IdRule::Hash { buckets } => {
                Error::option("number of buckets", buckets.into(), 2..1 << 31, "choose from 2 to 2^31 - 1")?;
            }
            IdRule::Stored => {}
            IdRule::Planted { .. } => {
                let reason = "planted ids are those of synthetic data: choose frequency, hash or stored";
                return Err(Error::Option { option: "rule of ids", reason: reason.to_owned() });
            }
        }
        match self.validation {
            Validation::Fraction(fraction) if !(0.0..1.0).contains(&fraction) => {
                let reason = format!("{fraction} is not possible; choose from 0 to less than 1");
                Err(Error::Option { option: "fraction of validation", reason })
            }
            _ => Ok(()),
        }
    }
}

/// Rows for validation: the last ones, because rows are in the order of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Validation {
    /// The last fraction of the rows, from 0 to less than 1.
    Fraction(f64),
    /// The rows of the last files.
    LastFiles(usize),
}

/// Result of a conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Description of the dataset.
    pub features: Features,
    /// Number of damaged rows, which were skipped.
    pub damaged: u64,
    /// The first damaged rows, at most 10.
    pub first_damaged: Vec<DamagedRow>,
    /// Passes over the input, in order.
    pub passes: Vec<Pass>,
}

/// A pass over the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Name of the pass: `count` or `rows`.
    pub name: &'static str,
    /// Bytes of uncompressed input.
    pub bytes: u64,
    /// Duration.
    pub time: Duration,
}
