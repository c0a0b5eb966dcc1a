//! The command line.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};

use crate::convert::Format;
use crate::error::Error;
use crate::host_tables::{CacheSize, HostTables};
use crate::plan_choice::PlanChoice;
use crate::processor::{DeviceName, Precision};
use crate::ranks::Exchanges;

/// Trains a described model on this machine, and compares its steps with their prediction
#[derive(Debug, Parser)]
#[command(
    name = "steptime-train",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "EXAMPLE
    steptime-train examples/models/dlrm_default.toml --batch 256 --steps 100
    steptime-train model.toml --data criteo --epochs 1 --rate 0.1 -o run
    steptime-train model.toml --data criteo --device cuda --dtype tf32
    steptime-train model.toml --data criteo --device cuda --gpus 2 --batch 131072
    steptime-train model.toml --data criteo --epochs 2 --rate 0.1 -o run --resume
    steptime-train model.toml --steps 200 --record run.json.gz --timeline run_steps.json
    steptime-train data criteo day_0.gz day_1.gz -o criteo"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub train: Train,
}

/// A command besides training.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Convert data to a dataset for training
    #[command(subcommand)]
    Data(Format),
}

/// A training run.
#[derive(Debug, Args)]
pub struct Train {
    /// The description of the model
    #[arg(value_name = "MODEL.toml", required = true)]
    pub model: Option<PathBuf>,
    /// Planted rows with known best measures, `synthetic` or `synthetic:zipf:A`; or the folder of a dataset
    #[arg(long, value_name = "synthetic[:zipf:A]|DIR", default_value = "synthetic")]
    pub data: DataName,
    /// The device: the processor, or an NVIDIA GPU by its number
    #[arg(long, value_name = "cpu|cuda[:N]", default_value = "cpu")]
    pub device: DeviceName,
    /// Number of ranks, each with its own GPU, from that of --device on, and its share of the batch. With `--device cpu` they share the processor
    #[arg(long, value_name = "N", default_value = "1")]
    pub gpus: NonZero<u32>,
    /// Placement of the tables on the ranks, as `steptime shard` writes it [default: that of the model for as many GPUs, or whole tables with
    /// equal lookups]
    #[arg(long, value_name = "PLAN.json")]
    pub placement: Option<PathBuf>,
    /// Way of data between GPUs: each writes the memory of the others, or NVIDIA's NCCL; by default the first where the GPUs are linked
    #[arg(long, value_enum, default_value_t = Exchanges::Auto)]
    pub exchanges: Exchanges,
    /// Precision of products, and of the tensors between layers
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    pub dtype: Precision,
    /// Number of threads of the processor; 0 for as many as the machine has. The result does not depend on it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Number of steps, those before a resumption too [default: 1000 on synthetic data without --epochs]
    #[arg(long, value_name = "N")]
    pub steps: Option<NonZero<u64>>,
    /// Number of passes over the data [default: 1 for a dataset without --steps]
    #[arg(long, value_name = "N")]
    pub epochs: Option<NonZero<u64>>,
    /// Samples a step of all ranks together, instead of the model's
    #[arg(long, value_name = "N")]
    pub batch: Option<NonZero<u64>>,
    /// Changes of the step: none, all that shorten it on this device, or those of a TOML file as for `steptime whatif --plan`
    #[arg(long, value_name = "none|best|FILE", default_value_t = PlanChoice::Best)]
    pub plan: PlanChoice,
    /// Tables in host memory, of which the GPU caches rows: the largest ones until the step fits, all, or some by their numbers in the model,
    /// such as 0,3. The result has the same bits
    #[arg(
        long,
        value_name = "auto|all|N,N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    pub host_memory: Option<HostTables>,
    /// Memory of the GPU for the cached rows, in GiB [default: what is free]
    #[arg(long, value_name = "GIB", requires = "host_memory")]
    pub cache: Option<CacheSize>,
    /// Seed of parameters, of the order of rows and of synthetic rows [default: 0, or that of the checkpoint]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Learning rate [default: PyTorch's of the optimizer]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Schedule of the learning rate, a TOML file: `warmup = { steps, start }`, `decay = { kind, ... }`
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// Rows of synthetic data in an epoch [default: each step has new rows]
    #[arg(long, value_name = "N")]
    pub rows: Option<NonZero<u64>>,
    /// Evaluate every N steps, and at the end [default: at the end]
    #[arg(long, value_name = "N")]
    pub eval_every: Option<NonZero<u64>>,
    /// Rows of an evaluation at most [default: 65536 of synthetic data, all validation rows of a dataset]
    #[arg(long, value_name = "N")]
    pub eval_rows: Option<NonZero<u64>>,
    /// Folder for checkpoints
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Write a checkpoint every N steps, and at the end [default: at the end]
    #[arg(long, value_name = "N", requires = "output")]
    pub save_every: Option<NonZero<u64>>,
    /// Number of checkpoints that are kept, the last ones
    #[arg(long, value_name = "N", default_value = "3")]
    pub keep: NonZero<usize>,
    /// Continue from the last checkpoint in the folder
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Write a recording of the last steps, in the format of PyTorch's profiler, for `steptime predict` and the other commands: `.json`,
    /// `.json.gz` or `.json.zst`. On a GPU these steps run launch by launch
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Number of recorded steps
    #[arg(long, value_name = "N", default_value = "20", requires = "record")]
    pub record_steps: NonZero<u64>,
    /// Write the timeline of the last steps in the same format, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Number of steps of the timeline
    #[arg(long, value_name = "N", default_value = "3", requires = "timeline")]
    pub timeline_steps: NonZero<u64>,
    /// Print one JSON object at the end instead of the table
    #[arg(long)]
    pub json: bool,
}

/// Name of the training data.
#[derive(Debug, Clone, PartialEq)]
pub enum DataName {
    /// Planted rows; Zipf exponent of the indices, 0 for uniform ones.
    Synthetic { zipf: f64 },
    /// Folder of a dataset.
    Folder(PathBuf),
}

impl FromStr for DataName {
    type Err = Error;

    fn from_str(text: &str) -> Result<DataName, Error> {
        match text.strip_prefix("synthetic") {
            Some("") => Ok(DataName::Synthetic { zipf: 0.0 }),
            Some(law) if law.starts_with(':') => {
                let exponent = law.strip_prefix(":zipf:").and_then(|text| text.parse().ok());
                let zipf = exponent.filter(|zipf| (0.0..=8.0).contains(zipf));
                zipf.map(|zipf| DataName::Synthetic { zipf })
                    .ok_or_else(|| Error::Law { text: text.to_owned() })
            }
            _ => Ok(DataName::Folder(text.into())),
        }
    }
}

impl fmt::Display for DataName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataName::Synthetic { zipf: 0.0 } => f.write_str("synthetic"),
            DataName::Synthetic { zipf } => write!(f, "synthetic:zipf:{zipf}"),
            DataName::Folder(path) => path.display().fmt(f),
        }
    }
}
