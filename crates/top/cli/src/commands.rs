//! The commands, one file each: its arguments, and its work. It reads the input, calls the library, and passes the answer to a report.

mod choose;
mod collectives;
mod compare;
mod device;
mod explain;
mod forward;
mod gather_plan;
mod host;
mod host_source;
mod ingest;
mod inspect;
mod kernels;
mod load;
mod predict;
mod pricing;
mod replay;
mod roofline;
mod scale;
mod shard;
mod shell;
mod sweep;
mod validate;
mod view;
mod what_if;

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use serde::Deserialize;

use crate::console::Console;
pub use crate::failure::Failure;

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

/// Commands.
#[derive(Debug, Subcommand, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Show the contents of an input: steps, threads, streams, time per op and per kernel, host overheads
    Inspect(inspect::Inspect),
    /// Fit and show host profiles: times of the host side of a step
    #[command(subcommand)]
    Host(host::Host),
    /// Fit, list and show device profiles: times of kernels on a GPU
    #[command(subcommand)]
    Device(device::Device),
    /// Predict single kernels
    #[command(subcommand)]
    Kernels(kernels::KernelsCommand),
    /// Predict the times of collectives among GPUs
    Collectives(collectives::Collectives),
    /// Place the tables of a described model on GPUs, so that the step of the job is short
    Shard(shard::ShardTables),
    /// Predict how a step scales with the number of GPUs
    Scale(scale::Scale),
    /// Compare each kernel with the device's roofline, and show what bounds it
    Roofline(roofline::Roofline),
    /// Predict the time of a step, and show where it goes
    Predict(predict::Predict),
    /// Predict the step time after changes: another batch, fused ops, a CUDA graph, a faster host, ...
    #[command(name = "whatif")]
    #[serde(rename = "whatif")]
    WhatIf(Box<what_if::WhatIf>),
    /// Show what bounds the step, and the changes that shorten it, the best first
    Explain(explain::Explain),
    /// Choose a GPU and a batch: memory fit, speed, bound, cost, and uncertainty of each
    Choose(choose::Choose),
    /// Predict the step time at every point of a grid of changes: batch x device x fusion x ...
    Sweep(sweep::Sweep),
    /// Convert the traces of many ranks and runs into a lake of Parquet, reading each once
    Ingest(ingest::Ingest),
    /// Query a lake in SQL; needs the Python package
    #[command(disable_help_flag = true)]
    #[serde(skip)]
    Query(ingest::Query),
    /// Show the step in a browser: the answer, its timeline, its graph, its kernels, changes to try
    View(view::View),
    /// Attribute the difference of two recordings to idle time, ops and kernels
    Compare(compare::Compare),
    /// Compare predictions with measured step times
    Validate(validate::Validate),
    /// Train a described model, and compare its steps with their prediction: the program `steptime-train`
    #[command(disable_help_flag = true)]
    #[serde(skip)]
    Train(forward::MovedCommand),
    /// Measure operators on this machine: the program `steptime-bench`
    #[command(hide = true, disable_help_flag = true)]
    #[serde(skip)]
    Bench(forward::MovedCommand),
    /// Show how matrix products are computed: the program `steptime-bench`
    #[command(hide = true, disable_help_flag = true)]
    #[serde(skip)]
    Gemm(forward::MovedCommand),
    /// Predict and explain the device-memory reads of each launch order of embedding lookups
    #[command(alias = "tiling")]
    GatherPlan(gather_plan::GatherPlan),
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

impl Command {
    /// Runs the command, with its output on the console.
    pub fn run(self, console: &Console<'_>) -> Result<(), Failure> {
        match self {
            Command::Inspect(args) => inspect::run(&args, console),
            Command::Host(args) => host::run(&args, console),
            Command::Device(args) => device::run(&args, console),
            Command::Kernels(args) => kernels::run(&args, console),
            Command::Collectives(args) => collectives::run(&args, console),
            Command::Shard(args) => shard::run(&args, console),
            Command::Scale(args) => scale::run(&args, console),
            Command::Roofline(args) => roofline::run(&args, console),
            Command::Predict(args) => predict::run(&args, console),
            Command::WhatIf(args) => what_if::run(&args, console),
            Command::Explain(args) => explain::run(&args, console),
            Command::Choose(args) => choose::run(&args, console),
            Command::Sweep(args) => sweep::run(&args, console),
            Command::Ingest(args) => ingest::run(&args, console),
            Command::Query(_) => ingest::query(),
            Command::Compare(args) => compare::run(&args, console),
            Command::Validate(args) => validate::run(&args, console),
            Command::Train(args) => forward::train(&args),
            Command::Bench(args) => forward::bench(&args),
            Command::Gemm(args) => forward::gemm(&args),
            Command::GatherPlan(args) => gather_plan::run(&args, console),
            Command::Completions { shell } => shell::completions(shell, console),
            Command::View(args) => view::run(&args, console),
            Command::Man { folder } => shell::manual(&folder),
        }
    }
}

/// Returns clap's error for options of a command that exclude one another.
pub fn usage(command: &str, words: &str) -> clap::Error {
    let mut all = Cli::command();
    all.build();
    let mut command = all.find_subcommand_mut(command).map_or_else(Cli::command, |found| found.clone());
    command.error(ErrorKind::ArgumentConflict, words)
}
