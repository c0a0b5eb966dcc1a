//! Arguments of `steptime device`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use serde::Deserialize;

use crate::cli::Form;

/// `steptime device`.
#[derive(Debug, Subcommand, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// Fit a device profile on sweeps made by `python -m steptime.measure`
    #[command(after_help = "EXAMPLE
    python -m steptime.measure --out sweep.parquet --minutes 10     # on the GPU
    steptime device fit sweep.parquet -o profiles/my-gpu
    steptime device fit later.parquet --onto profiles/my-gpu -o profiles/my-gpu    # adds a sweep")]
    Fit {
        /// Sweeps of one GPU
        #[arg(required = true, value_name = "SWEEP")]
        sweeps: Vec<PathBuf>,
        /// Recordings of training steps on the same GPU: kernels as they run inside a step
        #[arg(long, value_name = "RECORDING", num_args = 1..)]
        steps: Vec<PathBuf>,
        /// The device's specification: the fields of `[device]` in a profile [default: as measured by the sweep]
        #[arg(long, value_name = "FILE")]
        spec: Option<PathBuf>,
        /// A profile to improve, by a shipped one's name or its folder: its models are kept, and corrected for
        /// the kinds of calls in the sweeps
        #[arg(long, value_name = "NAME|FOLDER", conflicts_with = "spec")]
        onto: Option<String>,
        /// Recordings that the profile will be scored on: rows of the sweeps with the same kernel at the same sizes are left out
        #[arg(long, value_name = "RECORDING", num_args = 1..)]
        without: Vec<PathBuf>,
        /// Only kernels of these families, comma-separated, as named by `device show` [default: all]
        #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
        families: Vec<String>,
        /// The profile folder to write
        #[arg(short, long, value_name = "FOLDER")]
        output: PathBuf,
        /// Extent of the search for the multilayer perceptrons of the published method
        #[arg(long, value_enum, default_value_t = Search::Shipped)]
        search: Search,
        /// Random seed
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Predict the kernels in tables of measured times (sweeps, NeuSight's CSV, aiconfigurator's Parquet), and report the errors
    #[command(after_help = "EXAMPLE
    steptime device score bmm.csv gemm_perf.parquet        # each GPU by the profile of its name
    steptime device score sweep.parquet --device h100 --lent h200    # by another GPU's models")]
    Score {
        /// Tables of measured kernels
        #[arg(required = true, value_name = "TABLE")]
        tables: Vec<PathBuf>,
        /// The profile to price with, by a shipped one's name or its folder [default: each GPU's own]
        #[arg(long, value_name = "NAME|FOLDER")]
        device: Option<String>,
        /// Use the kernel models of this profile, transferred to the device, even if the device has its own
        #[arg(long, value_name = "NAME|FOLDER", requires = "device")]
        lent: Option<String>,
        /// With `--lent`: corrections of the transferred models, made by `device transfer` [default: none]
        #[arg(long, value_name = "FOLDER", requires = "lent")]
        corrections: Option<PathBuf>,
        /// Grouping of rows
        #[arg(long, value_enum, default_value_t = GroupBy::Kind)]
        by: GroupBy,
        /// Print every row instead of scores, as CSV
        #[arg(long, conflicts_with = "json")]
        rows: bool,
        /// Output format.
        #[command(flatten)]
        form: Form,
    },
    /// Learn corrections for transferring one GPU's models to unmeasured GPUs, from tables of many GPUs
    #[command(after_help = "EXAMPLE
    steptime device transfer tables/*.csv gemm_perf.parquet -o corrections --without l4
    steptime device score l4.csv --device l4 --lent h200 --corrections corrections")]
    Transfer {
        /// Tables of measured kernels
        #[arg(required = true, value_name = "TABLE")]
        tables: Vec<PathBuf>,
        /// The profile whose models are transferred
        #[arg(long, value_name = "NAME|FOLDER", default_value = "h200")]
        from: String,
        /// GPUs whose rows are left out, by their profiles' names
        #[arg(long, value_name = "NAME", num_args = 1..)]
        without: Vec<String>,
        /// Maximum number of rows per GPU to learn from, drawn evenly from each table
        #[arg(long, value_name = "ROWS", default_value_t = 30_000)]
        most: usize,
        /// The folder to write
        #[arg(short, long, value_name = "FOLDER")]
        output: PathBuf,
        /// Random seed
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// List the profiles that ship with steptime
    List {
        /// Output format.
        #[command(flatten)]
        form: Form,
    },
    /// Show a device profile: specification, families, models, errors, ranges
    Show {
        /// A shipped profile's name, or a profile's folder
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Grouping of the rows of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupBy {
    /// The generator of a sweep, or the kind of op in a table
    Kind,
    /// The family of kernels
    Family,
    /// The op
    Op,
}

/// Extent of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// The subset that the shipped profile used
    Shipped,
    /// All of the published search space, which takes days
    Full,
}
