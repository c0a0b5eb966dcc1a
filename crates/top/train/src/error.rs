//! Errors of a training run.

use std::io;
use std::path::PathBuf;

/// Reason why a run cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An unknown distribution of synthetic indices.
    #[error("{text}: synthetic data is `synthetic`, or `synthetic:zipf:A` with A from 0 to 8")]
    Law {
        /// The text.
        text: String,
    },
    /// An unknown device.
    #[error("there is no such device as {device}: use cpu, cuda, or cuda:N for a GPU by its number")]
    Device {
        /// The device.
        device: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}; a TOML file is needed", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A recording that cannot be written.
    #[error("cannot write {}: {source}; choose a file in a folder that exists and can be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// An invalid schedule.
    #[error("{}: {source}", path.display())]
    Schedule {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Data that does not fit the model.
    #[error("{data} does not fit the model:\n{}", reasons.join("\n"))]
    Misfit {
        /// The data.
        data: String,
        /// Differences, each with its remedy.
        reasons: Vec<String>,
    },
    /// An option without the option that it needs.
    #[error("{0}")]
    Options(String),
    /// An input that no data has.
    #[error(
        "the model takes the input `{name}`, which no data has: labels, dense values and lookups are known"
    )]
    Input {
        /// Name of the input.
        name: String,
    },
    /// A loss that is NaN or infinite.
    #[error(
        "step {step}: the loss is {loss}. The run has diverged: lower the learning rate (--rate {}), or warm it up \
         (--schedule). {checkpoint}", rate / 10.0
    )]
    Diverged {
        /// Number of the step, from 1.
        step: u64,
        /// The loss.
        loss: f32,
        /// Learning rate of the step.
        rate: f64,
        /// The last checkpoint, in words.
        checkpoint: String,
    },
    /// A step that exceeds the memory.
    #[error(
        "the step needs {:.1} GB of memory, and {:.1} GB are available: use a smaller --batch or smaller tables",
        *needed as f64 / 1e9, *available as f64 / 1e9
    )]
    Memory {
        /// Bytes of the step.
        needed: u64,
        /// Available bytes.
        available: u64,
    },
    /// An index that a table does not have.
    #[error("{column} (table {table} of the model): {source}")]
    Index {
        /// The column.
        column: String,
        /// Number of the table.
        table: usize,
        /// The place, and the remedy.
        source: Box<steptime_dataset::Error>,
    },
    /// A checkpoint of another run.
    #[error("{}: {reason}", path.display())]
    Checkpoint {
        /// The checkpoint, or the folder.
        path: PathBuf,
        /// Reason and remedy.
        reason: String,
    },
}
