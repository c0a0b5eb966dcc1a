//! `steptime device`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::Form;

/// `steptime device`.
#[derive(Debug, Subcommand)]
pub enum Device {
    /// Fit a device profile on sweeps made by `python -m steptime.measure`
    #[command(after_help = "EXAMPLE
    python -m steptime.measure --out sweep.parquet --minutes 10     # on the GPU
    steptime device fit sweep.parquet -o profiles/my-gpu
    steptime device fit later.parquet --onto profiles/my-gpu -o profiles/my-gpu     # the first sweep is gone")]
    Fit {
        /// Sweeps of one GPU
        #[arg(required = true, value_name = "SWEEP")]
        sweeps: Vec<PathBuf>,
        /// Recordings of training steps on the same GPU: kernels as they are inside a step
        #[arg(long, value_name = "RECORDING", num_args = 1..)]
        steps: Vec<PathBuf>,
        /// The device's specification: the fields of `[device]` in a profile [default: what the sweep measured]
        #[arg(long, value_name = "FILE")]
        spec: Option<PathBuf>,
        /// A profile to improve, by a shipped one's name or its folder: what it knows is kept, and corrected for
        /// the kinds of calls that the sweeps hold
        #[arg(long, value_name = "NAME|FOLDER", conflicts_with = "spec")]
        onto: Option<String>,
        /// Recordings that the profile will be scored on: rows that run one of their kernels, at its sizes, are left out
        #[arg(long, value_name = "RECORDING", num_args = 1..)]
        without: Vec<PathBuf>,
        /// Only kernels of these families, with commas between, as `device show` names them [default: all]
        #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
        families: Vec<String>,
        /// The profile's folder to write
        #[arg(short, long, value_name = "FOLDER")]
        output: PathBuf,
        /// How far to search for the multilayer perceptrons of the published method
        #[arg(long, value_enum, default_value_t = Search::Shipped)]
        search: Search,
        /// Seed of everything random
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Predict the kernels of tables, and tell how far off that is: sweeps, NeuSight's CSV, aiconfigurator's Parquet
    #[command(after_help = "EXAMPLE
    steptime device score bmm.csv gemm_perf.parquet        # each GPU by the profile that bears its name
    steptime device score sweep.parquet --device h100 --lent h200    # by the models of another GPU")]
    Score {
        /// Tables of measured kernels
        #[arg(required = true, value_name = "TABLE")]
        tables: Vec<PathBuf>,
        /// The profile to price with, by a shipped one's name or its folder [default: each GPU's own]
        #[arg(long, value_name = "NAME|FOLDER")]
        device: Option<String>,
        /// The profile whose models it is lent, though it may have its own
        #[arg(long, value_name = "NAME|FOLDER", requires = "device")]
        lent: Option<String>,
        /// With `--lent`: corrections of lent models, made by `device transfer` [default: none]
        #[arg(long, value_name = "FOLDER", requires = "lent")]
        corrections: Option<PathBuf>,
        /// What rows are put together by
        #[arg(long, value_enum, default_value_t = By::Kind)]
        by: By,
        /// Every row instead of scores, as CSV
        #[arg(long, conflicts_with = "json")]
        rows: bool,
        /// How to print it.
        #[command(flatten)]
        form: Form,
    },
    /// Learn from tables of many GPUs what one GPU's models are off on others, for GPUs that nothing is measured on
    #[command(after_help = "EXAMPLE
    steptime device transfer tables/*.csv gemm_perf.parquet -o corrections --without l4
    steptime device score l4.csv --device l4 --lent h200 --corrections corrections")]
    Transfer {
        /// Tables of measured kernels
        #[arg(required = true, value_name = "TABLE")]
        tables: Vec<PathBuf>,
        /// The profile whose models are lent
        #[arg(long, value_name = "NAME|FOLDER", default_value = "h200")]
        from: String,
        /// GPUs whose rows are left out, by their profiles' names
        #[arg(long, value_name = "NAME", num_args = 1..)]
        without: Vec<String>,
        /// The most rows of a GPU that are learnt from, drawn evenly from each table
        #[arg(long, value_name = "ROWS", default_value_t = 30_000)]
        most: usize,
        /// The folder to write
        #[arg(short, long, value_name = "FOLDER")]
        output: PathBuf,
        /// Seed of everything random
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// List the profiles that ship with steptime
    List {
        /// How to print it.
        #[command(flatten)]
        form: Form,
    },
    /// Show what is in a device profile: specification, families, models, errors, ranges
    Show {
        /// A shipped profile's name, or a profile's folder
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What rows of tables are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The generator of a sweep, or the kind of op in a table
    Kind,
    /// The family of kernels
    Family,
    /// The op
    Op,
}

/// How far to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// The subset that the shipped profile used
    Shipped,
    /// All of the published search space: days
    Full,
}
