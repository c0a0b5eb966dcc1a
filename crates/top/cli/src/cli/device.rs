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

/// How far to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// The subset that the shipped profile used
    Shipped,
    /// All of the published search space: days
    Full,
}
