//! `steptime collectives`.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use super::Form;

/// `steptime collectives`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime collectives --device h200 --gpus 2,4,8,16
    steptime collectives --device a100 --op all_reduce --bytes 64KiB,1MiB,64MiB
    torchrun --nproc-per-node 4 -m steptime.measure.collectives -o sweep.csv
    steptime collectives --device h200 --against sweep.csv")]
pub struct Collectives {
    /// The GPU, with its usual node and network: `h200`, `a100`, ...
    #[arg(long, value_name = "NAME")]
    pub device: String,
    /// Numbers of participating GPUs; more than a node has are spread over several nodes
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "2,4,8", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub gpus: Vec<u32>,
    /// GPUs per node [default: the usual number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub gpus_per_node: Option<u32>,
    /// Operations: `all_reduce`, `reduce_scatter`, `all_gather`, `all_to_all`, `broadcast`, `send_receive`
    #[arg(
        long,
        value_name = "OP,..",
        value_delimiter = ',',
        default_value = "all_reduce,reduce_scatter,all_gather,all_to_all"
    )]
    pub op: Vec<String>,
    /// Sizes of a rank's larger buffer: the output of an all-gather, the input of a reduce-scatter and an all-to-all
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_value = "64KiB,1MiB,16MiB,256MiB")]
    pub bytes: Vec<String>,
    /// A sweep by `python -m steptime.measure.collectives` to compare with
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["gpus", "op", "bytes"])]
    pub against: Option<PathBuf>,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}
