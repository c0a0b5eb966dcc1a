//! Commands over jobs on several GPUs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Form, HostChoice, OutputFile, Pricing, one_host};

/// `steptime shard`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime shard examples/models/dlrm_mlperf.toml --gpus 8 --device h200 -o plan.json
    steptime shard examples/models/dlrm_mlperf.toml --device h200 --evaluate plan.json
    steptime shard model.toml --gpus 8 --device h200 --host-memory 1000 --indices zipf:1.05

A plan names tables by their numbers in the description: t_0, t_1, ...; one by TorchRec or HugeCTR whose tables' names
end in these numbers is read, too.")]
pub struct ShardTables {
    /// The description of a model (.toml)
    pub model: PathBuf,
    /// How many GPUs; where a plan is given, as many as it names
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536), required_unless_present = "evaluate")]
    pub gpus: Option<u32>,
    /// In how many machines the GPUs are, as many in each; data between them goes over their network [default: as many GPUs in each as such machines usually have]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: Option<u32>,
    /// The GPUs: a shipped profile's name, or a profile's folder
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: String,
    /// Where the host's times come from: `default`, a profile's file, a probe's file, or a recording with a probe
    #[arg(long, value_name = "default|FILE", value_parser = one_host)]
    pub host: Option<HostChoice>,
    /// Memory of each GPU that the job may use, in GiB [default: nine tenths of what the GPU has]
    #[arg(long, value_name = "GIB", value_parser = positive)]
    pub memory: Option<f64>,
    /// Memory of each machine's host that tables may take, those of all its GPUs together, in GiB: what lies there has a cache of its
    /// rows on its GPU [default: none]
    #[arg(long, value_name = "GIB", value_parser = positive)]
    pub host_memory: Option<f64>,
    /// Tell how long the step takes with this plan, and search for none
    #[arg(long, value_name = "PLAN.json", conflicts_with_all = ["memory", "host_memory"])]
    pub evaluate: Option<PathBuf>,
    /// Write the plan
    #[arg(long, short, value_name = "PLAN.json")]
    pub output: Option<OutputFile>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = PlanFormat::Torchrec, requires = "output")]
    pub format: PlanFormat,
    /// The path of the tables' module in the model that is to take the plan, as TorchRec wants it
    #[arg(long, value_name = "PATH", default_value = "sparse_arch.embedding_bag_collection")]
    pub module: String,
    /// How kernels are priced.
    #[command(flatten)]
    pub pricing: Pricing,
    /// How to print it.
    #[command(flatten)]
    pub form: Form,
}

/// How a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// As TorchRec's `ShardingPlan` serializes
    Torchrec,
    /// As HugeCTR's `shard_matrix` and `shard_strategy`
    Hugectr,
}

/// `steptime scale`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime scale examples/models/dlrm_mlperf.toml --gpus 1,2,4,8 --device h200 --price 3.50
    steptime scale examples/models/dlrm_mlperf.toml --gpus 8,16,32 --nodes 1,2,4 --weak --device h200 --plot scale.svg
    steptime scale examples/resnet50_32 --weak                                  # a recording: data parallel")]
pub struct Scale {
    /// The description of a model (.toml), or the step of one GPU: a recording with an execution trace, or an execution trace
    #[arg(value_name = "INPUT")]
    pub model: PathBuf,
    /// Numbers of GPUs
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub gpus: Vec<u32>,
    /// In how many machines they are, as many in each: one number, or one for each number of GPUs [default: as many GPUs in each as such machines usually have]
    #[arg(long, value_name = "M,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: Vec<u32>,
    /// The GPUs: a shipped profile's name, or a profile's folder [default: that of the recording]
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// Where the host's times come from: `own`, `default`, a profile's file, a probe's file, or a recording with a probe
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    pub host: Option<HostChoice>,
    /// Every GPU keeps as many samples as the input gives to one; else all share these
    #[arg(long)]
    pub weak: bool,
    /// Draw samples a second and efficiency over the number of GPUs
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<OutputFile>,
    /// Price per GPU-hour: tells what a thousand million samples cost
    #[arg(long, value_name = "MONEY", value_parser = positive)]
    pub price: Option<f64>,
    /// How kernels are priced.
    #[command(flatten)]
    pub pricing: Pricing,
    /// How to print it.
    #[command(flatten)]
    pub form: Form,
}

/// A number above zero.
fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err("say a number above zero".into()) }
}
