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
    /// A plan that cannot be read, or that has a change that no program runs.
    #[error("{}: {reason}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// Reason, with the remedy.
        reason: String,
    },
    /// A precision that the model's step does not have.
    #[error("--dtype {precision}: {reason}; use another --dtype")]
    Precision {
        /// Name of the precision.
        precision: &'static str,
        /// Reason.
        reason: String,
    },
    /// A rule of a plan whose step no program runs.
    #[error("the plan's {rule} is not run: {reason}. Leave it out of {}", path.display())]
    Unrun {
        /// Name of the rule.
        rule: &'static str,
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
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
        "the step needs {:.1} GB of memory, and {:.1} GB are available: use a smaller --batch{}",
        *needed as f64 / 1e9, *available as f64 / 1e9, if *cacheable { ", smaller tables, or --host-memory" } else { " or smaller tables" }
    )]
    Memory {
        /// Bytes of the step.
        needed: u64,
        /// Available bytes.
        available: u64,
        /// Whether tables could be in host memory.
        cacheable: bool,
    },
    /// A step that exceeds the memory of the GPU with tables in host memory.
    #[error(
        "with tables in host memory the step needs {:.1} GB of the GPU, and {:.1} GB are available: use a smaller --batch, or more tables of          --host-memory",
        *needed as f64 / 1e9, *available as f64 / 1e9
    )]
    Cache {
        /// Bytes of the step and of the caches.
        needed: u64,
        /// Available bytes.
        available: u64,
    },
    /// Tables that exceed the memory of the host.
    #[error(
        "the tables in host memory need {:.1} GB, and {:.1} GB are available: use fewer tables of --host-memory, or smaller ones",
        *needed as f64 / 1e9, *available as f64 / 1e9
    )]
    HostMemory {
        /// Bytes of the tables and of their states.
        needed: u64,
        /// Available bytes.
        available: u64,
    },
    /// A batch whose rows do not fit the caches.
    #[error("{source}: raise --cache, or use a smaller --batch")]
    SmallCache {
        /// The batch, and the tables with the number of rows that they need.
        source: Box<steptime_runtime::Error>,
    },
    /// Unknown tables.
    #[error("{text}: tables in host memory are `auto`, `all`, or numbers such as `0,3`")]
    HostTables {
        /// The text.
        text: String,
    },
    /// A table that the model does not have, or that cannot be cached.
    #[error("there is no table {number} that can be in host memory: the model has the tables 0 to {}", tables.saturating_sub(1))]
    NoTable {
        /// Number of the table.
        number: usize,
        /// Number of tables that can be cached.
        tables: usize,
    },
    /// An invalid size of a cache.
    #[error("{text}: the size of the cache is a number of GiB above 0, such as 2 or 0.5")]
    CacheSize {
        /// The text.
        text: String,
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
