//! Commands for jobs on several GPUs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::{Form, HostChoice, OutputFile, Pricing, one_host, optional_host};

/// `steptime shard`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime shard examples/models/dlrm_mlperf.toml --gpus 8 --device h200 -o plan.json
    steptime shard examples/models/dlrm_mlperf.toml --device h200 --evaluate plan.json
    steptime shard model.toml --gpus 8 --device h200 --host-memory 1000 --indices zipf:1.05

A plan names tables by their numbers in the description: t_0, t_1, ...; a plan by TorchRec or HugeCTR is read too if its tables' \
names end in these numbers.")]
pub struct ShardTables {
    /// The description of a model (.toml)
    pub model: PathBuf,
    /// Number of GPUs [default: that of the plan, with --evaluate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536), required_unless_present = "evaluate")]
    pub gpus: Option<u32>,
    /// Number of nodes (GPUs are divided evenly); data between nodes goes over their network [default: by the usual number of GPUs per node]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: Option<u32>,
    /// The GPUs: a shipped profile's name, or a profile's folder
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: String,
    /// Source of host times: `default` (a typical host, shipped with steptime), a profile's file, a probe's file, or a recording with a
    /// probe
    #[arg(long, value_name = "default|FILE", value_parser = one_host)]
    #[serde(deserialize_with = "optional_host")]
    pub host: Option<HostChoice>,
    /// Memory that the job may use on each GPU, in GiB [default: nine tenths of the GPU's memory]
    #[arg(long, value_name = "GIB", value_parser = positive)]
    pub memory: Option<f64>,
    /// Host memory of a node, in GiB, for the tables of all GPUs of the node together; tables in host memory have a cache of rows on
    /// their GPU [default: none]
    #[arg(long, value_name = "GIB", value_parser = positive)]
    pub host_memory: Option<f64>,
    /// Predict the step time with this plan, without a search
    #[arg(long, value_name = "PLAN.json", conflicts_with_all = ["memory", "host_memory"])]
    pub evaluate: Option<PathBuf>,
    /// Write the plan
    #[arg(long, short, value_name = "PLAN.json")]
    pub output: Option<OutputFile>,
    /// Format of the written plan
    #[arg(long, value_enum, default_value_t = PlanFormat::Torchrec, requires = "output")]
    pub format: PlanFormat,
    /// Path of the tables' module in the model that will use the plan, as TorchRec names it
    #[arg(long, value_name = "PATH", default_value = "sparse_arch.embedding_bag_collection")]
    pub module: String,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

/// File format of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanFormat {
    /// TorchRec's serialized `ShardingPlan`
    Torchrec,
    /// HugeCTR's `shard_matrix` and `shard_strategy`
    Hugectr,
}

/// `steptime scale`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime scale examples/models/dlrm_mlperf.toml --gpus 1,2,4,8 --device h200 --price 3.50
    steptime scale examples/models/dlrm_mlperf.toml --gpus 8,16 --nodes 1,2 --weak --device h200
    steptime scale examples/resnet50_32 --weak --plot scale.svg    # a recording: data parallel")]
pub struct Scale {
    /// The description of a model (.toml), or the step of one GPU: a recording with an execution trace, or an execution trace
    #[arg(value_name = "INPUT")]
    pub model: PathBuf,
    /// Numbers of GPUs, comma-separated, each predicted
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub gpus: Vec<u32>,
    /// Number of nodes (GPUs are divided evenly): one number, or one for each number of GPUs [default: by the usual number of GPUs per node]
    #[arg(long, value_name = "M,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: Vec<u32>,
    /// The GPUs: a shipped profile's name, or a profile's folder [default: that of the recording]
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// Source of host times: `own` (those of the recording), `default` (a typical host, shipped with steptime), a profile's file, a
    /// probe's file, or a recording with a probe
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    #[serde(deserialize_with = "optional_host")]
    pub host: Option<HostChoice>,
    /// Weak scaling: each GPU keeps the input's number of samples; without it, all GPUs share them
    #[arg(long)]
    pub weak: bool,
    /// Plot samples per second and efficiency over the number of GPUs
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<OutputFile>,
    /// Price per GPU-hour; adds the cost per billion samples
    #[arg(long, value_name = "MONEY", value_parser = positive)]
    pub price: Option<f64>,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

/// Reads a number above zero.
fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err("give a number above zero".into()) }
}
