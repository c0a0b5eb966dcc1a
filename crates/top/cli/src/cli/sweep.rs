//! `steptime sweep`.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use super::shard::{optional_shard, shard};
use super::{Form, OutputFile, Shard, Target};

/// `steptime sweep`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime sweep examples/dlrm_default_2048 --grid examples/grid.toml -o grid.parquet
    steptime sweep examples/dlrm_default_2048 --grid examples/grid.toml -o part.parquet --shard 1/4

A grid is TOML: keys of a plan of `whatif`, and device, each with a list of values; \"as-is\" leaves a key out:
    batch = [2048, 4096, 8192]
    device = [\"h200\", \"a100\"]
    cuda-graph = [false, true]
Repeat the command to resume an interrupted sweep.")]
pub struct Sweep {
    /// A recording with an execution trace, an execution trace, or the description of a model (.toml)
    pub input: PathBuf,
    /// The keys and their values
    #[arg(long, value_name = "FILE.toml")]
    pub grid: PathBuf,
    /// File for the results, as Parquet: one row per point
    #[arg(short, long, value_name = "OUT.parquet")]
    pub output: OutputFile,
    /// Only every Nth point, from the Ith on: 1/4, 2/4, 3/4 and 4/4 are all
    #[arg(long, value_name = "I/N", value_parser = shard)]
    #[serde(deserialize_with = "optional_shard")]
    pub shard: Option<Shard>,
    /// Plot step times over a key that has several numbers
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<OutputFile>,
    /// Device, host and part of the input.
    #[command(flatten)]
    pub whom: Target,
    /// Output format of the summary.
    #[command(flatten)]
    pub form: Form,
}
