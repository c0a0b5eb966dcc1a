//! Arguments of `steptime predict`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use steptime_rewrite::Blocks;

use crate::cli::{
    Form, HostChoice, OutputFile, Part, Pricing, ProcessChoice, one_host, optional_blocks, optional_host,
    times_as_long,
};

/// `steptime predict`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime predict examples/dlrm_default_2048
    steptime predict examples/resnet50_32 --timeline step.json     # for ui.perfetto.dev
    steptime predict examples/dlrm_default_2048/et.json.gz --device h200    # no GPU times
    steptime predict examples/dlrm_default_2048 --device h200,a100,l4       # one table
    steptime predict examples/models/dcn_v2.toml --device h200     # a model
    steptime predict examples/resnet50_32 --world 8                # one rank of eight
    steptime predict examples/dlrm_default_2048 --csv > ops.csv")]
pub struct Predict {
    /// A recording, a trace, a folder of ranks, or the description of a model (.toml)
    pub input: PathBuf,
    /// Source of host times: `own` (those of the recording), `default` (a typical host, shipped with steptime), a profile's file, a
    /// probe's file, or a recording with a probe [default: `own`; for a lone execution trace, which has no times, `default`]
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    #[serde(deserialize_with = "optional_host")]
    pub host: Option<HostChoice>,
    /// Factor on all host times of the profile: 1.7 for a host 1.7 times as slow
    #[arg(long, value_name = "TIMES", value_parser = times_as_long)]
    pub host_speed: Option<f64>,
    /// GPU to predict kernel times for: a shipped profile's name, or a profile's folder; several, comma-separated, are
    /// compared in one table
    #[arg(long, value_name = "NAME|FOLDER,..", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// State of the predicted process: after a profiler has run in it, every runtime call takes longer
    #[arg(long, value_enum, default_value_t = ProcessChoice::Auto)]
    pub process: ProcessChoice,
    /// Method of computing the step time
    #[arg(long, value_enum, default_value_t = Method::Simulate)]
    pub method: Method,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
    /// Write the predicted step beside the measured one, as a Chrome trace
    #[arg(long, value_name = "OUT.json")]
    pub timeline: Option<OutputFile>,
    /// Step and rank.
    #[command(flatten)]
    pub part: Part,
    /// Keep the profiler's own cost: predict the step under the profiler
    #[arg(long)]
    pub keep_profiler: bool,
    /// Job of the step. It is the last field: its heading covers all options after it.
    #[command(flatten)]
    pub world: World,
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

/// Job in which every rank runs the step of one.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[command(next_help_heading = "A job on several GPUs, from the step of one rank")]
pub struct World {
    /// Number of GPUs, one rank on each: all run this step, gradients are averaged as by DistributedDataParallel, and embedding tables
    /// with sparse gradients are placed on the ranks in turn
    #[arg(long = "world", value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    #[serde(rename = "world")]
    pub ranks: Option<u32>,
    /// Number of nodes (GPUs are divided evenly); data between nodes goes over their network [default: by the usual number of GPUs per node]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub nodes: Option<u32>,
    /// Samples of all ranks together [default: each rank has the recorded number]
    #[arg(long, value_name = "SAMPLES")]
    pub global_batch: Option<u64>,
    /// Placement of embedding tables: TorchRec's sharding plan, or HugeCTR's matrices; tables are numbered in the order
    /// of their first lookup
    #[arg(long, value_name = "PLAN.json")]
    pub plan: Option<PathBuf>,
    /// Parameters, gradients and optimizer states that a rank keeps: `ddp` all; `zero1` all, except states of parameters that other
    /// ranks update; `zero2` a part of each, but parameters stay whole from the forward to the backward pass; `fsdp` a part of each
    #[arg(long, value_enum, requires = "ranks", default_value_t = Parallel::Ddp)]
    pub parallel: Parallel,
    /// Blocks that `fsdp` and `zero2` gather one by one: modules by path (`module:Net.down.*,module:Net.up.*`), all modules at a depth
    /// (`depth:2`), or the whole model (`whole`) [default: modules of the class with the most calls, else repeated stretches]
    #[arg(long, value_name = "module:PATH,..|depth:N|whole", requires = "ranks")]
    #[serde(deserialize_with = "optional_blocks")]
    pub blocks: Option<Blocks>,
    /// Data type in which gradients are sent
    #[arg(long, value_enum, value_name = "TYPE")]
    pub send: Option<SendAs>,
    /// Make gradients views of the buckets (gradient_as_bucket_view)
    #[arg(long)]
    pub bucket_view: bool,
    /// Do not average the gradients of tables that every rank has: each rank updates its copies from its own samples
    #[arg(long)]
    pub copies_apart: bool,
    /// Changes to apply to every rank's part of the job: a plan as for `whatif --plan`. Without --world, they apply to
    /// the ranks of a job described in TOML
    #[arg(long, value_name = "PLAN.toml")]
    pub changes: Option<PathBuf>,
    /// Size of a full bucket of gradients, in MiB (bucket_cap_mb) [default: 1 for the first, then 25]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub bucket_mb: Option<u64>,
}

/// Parameters, gradients and optimizer states that a rank keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parallel {
    /// DistributedDataParallel: all
    #[default]
    Ddp,
    /// FSDP2, fully_shard: a part of each
    Fsdp,
    /// ZeroRedundancyOptimizer: all parameters and gradients, and the states of the parameters that the rank updates
    Zero1,
    /// FSDP2 with reshard_after_forward=False: parameters stay whole from the forward to the backward pass
    Zero2,
}

/// Types that gradients are sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendAs {
    /// bf16_compress_hook
    Bf16,
    /// fp16_compress_hook
    Fp16,
}
