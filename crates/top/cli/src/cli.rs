//! Arguments of the command line.

mod choose;
mod collectives;
mod compare;
mod device;
mod gather_plan;
mod ingest;
mod jobs;
mod kernels;
mod output_file;
mod predict;
mod shard;
mod sweep;
mod view;
mod what_if;

use std::ffi::OsString;
use std::path::PathBuf;

pub use choose::Choose;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
pub use collectives::Collectives;
pub use compare::Compare;
pub use device::{Device, GroupBy, Search};
pub use gather_plan::GatherPlan;
pub use ingest::{Ingest, Query};
pub use jobs::{PlanFormat, Scale, ShardTables};
pub use kernels::{KernelsCommand, Roofline};
pub use output_file::OutputFile;
pub use predict::{Parallel, Planner, Predict, SendAs, Validate, World};
use serde::{Deserialize, Deserializer};
pub use shard::Shard;
pub use sweep::Sweep;
pub use view::View;
pub use what_if::{Changes, Explain, Fuse, Operators, Precision, Target, WhatIf, selection, size};

use crate::request::checked;

/// Predicts the time of a training step, explains it, and finds changes that shorten it.
#[derive(Debug, Parser)]
#[command(
    name = "steptime",
    version,
    max_term_width = 100,
    after_help = "EXAMPLE
    steptime predict examples/dlrm_default_2048

An INPUT is a recording (a folder with kineto.json.gz and meta.json), a Kineto trace, an execution trace, a folder with one of these \
for each rank, or a tar archive of traces; plain, .gz or .zst. A file that ends in .toml describes a model: it is read as the execution \
trace of a training step of that model."
)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Returns clap's error for options of a command that exclude one another.
pub fn usage(command: &str, words: &str) -> clap::Error {
    let mut all = Cli::command();
    all.build();
    let mut command = all.find_subcommand_mut(command).map_or_else(Cli::command, |found| found.clone());
    command.error(ErrorKind::ArgumentConflict, words)
}

/// Commands.
#[derive(Debug, Subcommand, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Show the contents of an input: steps, threads, streams, time per op and per kernel, host overheads
    Inspect(Inspect),
    /// Fit and show host profiles: times of the host side of a step
    #[command(subcommand)]
    Host(Host),
    /// Fit, list and show device profiles: times of kernels on a GPU
    #[command(subcommand)]
    Device(Device),
    /// Predict single kernels
    #[command(subcommand)]
    Kernels(KernelsCommand),
    /// Predict the times of collectives among GPUs
    Collectives(Collectives),
    /// Place the tables of a described model on GPUs, so that the step of the job is short
    Shard(ShardTables),
    /// Predict how a step scales with the number of GPUs
    Scale(Scale),
    /// Compare each kernel with the device's roofline, and show what bounds it
    Roofline(Roofline),
    /// Predict the time of a step, and show where it goes
    Predict(Predict),
    /// Predict the step time after changes: another batch, fused ops, a CUDA graph, a faster host, ...
    #[command(name = "whatif")]
    #[serde(rename = "whatif")]
    WhatIf(Box<WhatIf>),
    /// Show what bounds the step, and the changes that shorten it, the best first
    Explain(Explain),
    /// Choose a GPU and a batch: memory fit, speed, bound, cost, and uncertainty of each
    Choose(Choose),
    /// Predict the step time at every point of a grid of changes: batch x device x fusion x ...
    Sweep(Sweep),
    /// Convert the traces of many ranks and runs into a lake of Parquet, reading each once
    Ingest(Ingest),
    /// Query a lake in SQL; needs the Python package
    #[command(disable_help_flag = true)]
    #[serde(skip)]
    Query(Query),
    /// Show the step in a browser: the answer, its timeline, its graph, its kernels, changes to try
    View(View),
    /// Attribute the difference of two recordings to idle time, ops and kernels
    Compare(Compare),
    /// Compare predictions with measured step times
    Validate(Validate),
    /// Train a described model, and compare its steps with their prediction: the program `steptime-train`
    #[command(disable_help_flag = true)]
    #[serde(skip)]
    Train(MovedCommand),
    /// Measure operators on this machine: the program `steptime-bench`
    #[command(hide = true, disable_help_flag = true)]
    #[serde(skip)]
    Bench(MovedCommand),
    /// Show how matrix products are computed: the program `steptime-bench`
    #[command(hide = true, disable_help_flag = true)]
    #[serde(skip)]
    Gemm(MovedCommand),
    /// Predict and explain the device-memory reads of each launch order of embedding lookups
    #[command(alias = "tiling")]
    GatherPlan(GatherPlan),
    /// Print a script that completes words in a shell
    #[command(after_help = "EXAMPLE
    steptime completions bash > ~/.local/share/bash-completion/completions/steptime")]
    #[serde(skip)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one per command
    #[command(after_help = "EXAMPLE
    steptime man ~/.local/share/man/man1")]
    #[serde(skip)]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

/// Arguments of a command that is a program of its own.
#[derive(Debug, Args)]
pub struct MovedCommand {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// `steptime inspect`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime inspect examples/dlrm_default_2048
    steptime inspect traces/param_dlrm_8xV100 --rank 3 --json")]
pub struct Inspect {
    /// A recording, a trace, a folder of ranks, or the description of a model (.toml)
    pub input: PathBuf,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
    /// Step and rank.
    #[command(flatten)]
    pub part: Part,
}

/// Output format of an answer; text by default.
#[derive(Debug, Clone, Copy, Args, Deserialize)]
pub struct Form {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the answer's tables as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// Step and rank of an input.
#[derive(Debug, Args, Deserialize)]
pub struct Part {
    /// Only this step, by its number
    #[arg(long, value_name = "N")]
    pub step: Option<u32>,
    /// This rank, if there are several [default: the lowest]
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
}

/// `steptime host`.
#[derive(Debug, Subcommand, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// Fit a host profile on recordings
    #[command(after_help = "EXAMPLE
    steptime host fit examples -o my-host.toml")]
    Fit {
        /// Recordings, or folders of recordings
        #[arg(required = true, value_name = "RECORDING")]
        recordings: Vec<PathBuf>,
        /// Recordings from other hosts: they add op durations, rescaled to this host's speed
        #[arg(long, num_args = 1.., value_name = "RECORDING")]
        others: Vec<PathBuf>,
        /// The profile to write
        #[arg(short, long, value_name = "FILE")]
        output: OutputFile,
    },
    /// Show a host profile
    #[command(after_help = "EXAMPLE
    steptime host show
    steptime host show my-host.toml")]
    Show {
        /// The profile [default: the one that ships with steptime]
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Source of host times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostChoice {
    /// The recording itself.
    Own,
    /// The profile that ships with steptime.
    Default,
    /// A profile fitted on all other architectures.
    LeaveOneOut,
    /// A profile.
    File(PathBuf),
}

/// Options for pricing kernels by a device profile.
#[derive(Debug, Args, Deserialize)]
pub struct Pricing {
    /// The profile's models to use
    #[arg(long, value_enum, default_value_t = Models::Best)]
    pub models: Models,
    /// Distribution of the indices of embedding lookups: `uniform`, `zipf:A`, `folded-zipf:A` (numpy's zipf modulo the number of rows), or a
    /// file of indices, one per line (`file:PATH` for a file with such a name) [default: as noted in the recording, else uniform]
    #[arg(long, value_name = "uniform|zipf:A|folded-zipf:A|FILE")]
    pub indices: Option<String>,
    /// Multiply matrices in TF32, as after torch.backends.cuda.matmul.allow_tf32 = True
    #[arg(long)]
    pub tf32: bool,
}

/// Models of a device profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Models {
    /// The best of each family by cross-validation
    Best,
    /// The method of arXiv 2201.07821: its formulas for embeddings, concatenations and copies; networks like its own, less
    /// well trained, for matrix products and convolutions; the roofline for all other kernels
    Paper,
    /// Formulas of the device's specification
    Analytic,
    /// Trained on the measured kernels of the profile's sweep
    Learnt,
}

/// The state of the process to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessChoice {
    /// As noted in meta.json, else profiled
    Auto,
    /// A profiler has run in it before
    Profiled,
    /// No profiler has ever run in it
    Fresh,
}

/// Method of computing the step time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Replay threads, streams and waits in simulated time
    Simulate,
    /// Algorithm 1 of arXiv 2201.07821 with the measured cost of the profiler, for comparison
    Paper,
    /// The same with the published cost of the profiler: 2 us per host event, 4 us per device event
    PaperPublished,
    /// The plain sum of kernels, for comparison
    KernelSum,
}

impl HostChoice {
    /// Returns the choice as typed on the command line.
    pub fn label(&self) -> String {
        match self {
            HostChoice::Own => "own".into(),
            HostChoice::Default => "default".into(),
            HostChoice::LeaveOneOut => "leave-one-out".into(),
            HostChoice::File(path) => path.display().to_string(),
        }
    }
}

fn any_host(text: &str) -> Result<HostChoice, String> {
    Ok(match text {
        "" => return Err("a file name is missing".into()),
        "own" => HostChoice::Own,
        "default" => HostChoice::Default,
        "leave-one-out" => HostChoice::LeaveOneOut,
        file => HostChoice::File(file.into()),
    })
}

fn times_as_long(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times.is_finite() && (0.05..=50.0).contains(&times) => Ok(times),
        _ => Err("it is a factor between 0.05 and 50: 1.7 for a host 1.7 times as slow".into()),
    }
}

fn one_host(text: &str) -> Result<HostChoice, String> {
    match any_host(text)? {
        HostChoice::LeaveOneOut => Err("it needs several recordings: use `steptime validate`".into()),
        choice => Ok(choice),
    }
}

fn required_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HostChoice, D::Error> {
    checked::one(deserializer, any_host)
}

fn optional_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HostChoice>, D::Error> {
    checked::optional(deserializer, one_host)
}
