//! `steptime collectives`.

use std::path::PathBuf;

use clap::Args;

use super::Form;

/// `steptime collectives`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime collectives --device h200 --gpus 2,4,8,16
    steptime collectives --device a100 --op all_reduce --bytes 64KiB,1MiB,64MiB
    torchrun --nproc-per-node 4 -m steptime.measure.collectives -o sweep.csv
    steptime collectives --device h200 --against sweep.csv")]
pub struct Collectives {
    /// The GPUs: `h200`, `a100`, ...; their usual node and network
    #[arg(long, value_name = "NAME")]
    pub device: String,
    /// Numbers of GPUs that take part; more than a node has are on several
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "2,4,8", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub gpus: Vec<u32>,
    /// GPUs of a node, where that is not the usual number
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
    /// Sizes of the larger buffer of a rank: of an all-gather its output, of a reduce-scatter and an all-to-all its input
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_value = "64KiB,1MiB,16MiB,256MiB")]
    pub bytes: Vec<String>,
    /// A sweep by `python -m steptime.measure.collectives`, to be compared with
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["gpus", "op", "bytes"])]
    pub against: Option<PathBuf>,
    /// How to print it.
    #[command(flatten)]
    pub form: Form,
}
