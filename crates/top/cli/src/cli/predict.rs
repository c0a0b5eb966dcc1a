//! `steptime predict` and `steptime validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use steptime::rewrite::Blocks;

use super::{
    Form, HostChoice, Method, OutputFile, Part, Pricing, ProcessChoice, any_host, one_host, times_as_long,
};

/// `steptime predict`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime predict examples/dlrm_default_2048
    steptime predict examples/resnet50_32 --host default --timeline step.json   # open in ui.perfetto.dev
    steptime predict examples/dlrm_default_2048/et.json.gz --device h200        # no GPU, no measured time
    steptime predict examples/dlrm_default_2048 --device h200,a100,l4           # one table
    steptime predict examples/resnet50_32 --world 8                             # one rank of eight
    steptime predict examples/dlrm_default_2048 --csv > ops.csv")]
pub struct Predict {
    /// A recording, a trace, or a folder of ranks
    pub input: PathBuf,
    /// Where the host's times come from: `own`, `default`, a profile's file, a probe's file, or a recording with a probe
    /// [default: own; default for a lone execution trace, which has no times]
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    pub host: Option<HostChoice>,
    /// How many times as long as the profile's host yours takes for everything
    #[arg(long, value_name = "TIMES", value_parser = times_as_long)]
    pub host_speed: Option<f64>,
    /// Price every kernel for a device: a shipped profile's name, or a profile's folder; several, set apart by commas, are
    /// compared in one table
    #[arg(long, value_name = "NAME|FOLDER,..", value_delimiter = ',')]
    pub device: Vec<String>,
    /// How kernels are priced.
    #[command(flatten)]
    pub pricing: Pricing,
    /// The state of the process to predict: once a profiler has run in it, every runtime call takes longer
    #[arg(long, value_enum, default_value_t = ProcessChoice::Auto)]
    pub process: ProcessChoice,
    /// How the step time is computed
    #[arg(long, value_enum, default_value_t = Method::Simulate)]
    pub method: Method,
    /// How to print it.
    #[command(flatten)]
    pub form: Form,
    /// Write the predicted step beside the measured one, as a Chrome trace
    #[arg(long, value_name = "OUT.json")]
    pub timeline: Option<OutputFile>,
    /// The step as that of a job.
    #[command(flatten)]
    pub world: World,
    /// Which step and rank.
    #[command(flatten)]
    pub part: Part,
    /// Leave the profiler's own cost in: predict the step as it was while profiled
    #[arg(long)]
    pub keep_profiler: bool,
}

/// How one rank's step becomes that of a job.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "A job of one rank's step")]
pub struct World {
    /// So many GPUs, a rank on each: all run this step, gradients are averaged as DistributedDataParallel does, and embedding tables
    /// with sparse gradients lie on the ranks in turn
    #[arg(long = "world", value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub ranks: Option<u32>,
    /// In how many machines the GPUs are, as many in each; data between them goes over their network [default: as many GPUs in each as such machines usually have]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub nodes: Option<u32>,
    /// Samples of all ranks together [default: each rank has as many as were recorded]
    #[arg(long, value_name = "SAMPLES")]
    pub global_batch: Option<u64>,
    /// Where embedding tables lie: TorchRec's sharding plan, or HugeCTR's matrices; tables by their numbers, in the order in which
    /// they are looked up first
    #[arg(long, value_name = "PLAN.json")]
    pub plan: Option<PathBuf>,
    /// What a rank keeps of parameters, gradients and the optimizer's states: `ddp` all, `zero1` the states of what it
    /// updates, `zero2` a part of each, parameters whole from the forward to the backward pass, `fsdp` a part of each
    #[arg(long, value_enum, requires = "ranks", default_value_t = Parallel::Ddp)]
    pub parallel: Parallel,
    /// Blocks that `fsdp` and `zero2` gather each by itself: modules by their paths, `module:Net.down.*,module:Net.up.*`, all so deep inside the model,
    /// `depth:2`, or the model alone, `whole` [default: modules of the class that is called most often, else stretches that come again]
    #[arg(long, value_name = "module:PATH,..|depth:N|whole", requires = "ranks")]
    pub blocks: Option<Blocks>,
    /// Send gradients in another type
    #[arg(long, value_enum, value_name = "TYPE")]
    pub send: Option<SendAs>,
    /// Gradients are views of the buckets (gradient_as_bucket_view)
    #[arg(long)]
    pub bucket_view: bool,
    /// Tables that every rank has are updated by each from its own samples: their gradients are not averaged
    #[arg(long)]
    pub copies_apart: bool,
    /// Changes that are made on every rank, once it has its part of the job: a plan of `whatif --plan`. Without --world, of the ranks
    /// of a described job
    #[arg(long, value_name = "PLAN.toml")]
    pub changes: Option<PathBuf>,
    /// From how many MiB on a bucket of gradients is full (bucket_cap_mb) [default: 1 the first, then 25]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub bucket_mb: Option<u64>,
}

/// What ranks keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Parallel {
    /// DistributedDataParallel: all
    #[default]
    Ddp,
    /// FSDP2, fully_shard: a part of each
    Fsdp,
    /// ZeroRedundancyOptimizer: all parameters and gradients, and the states of those that it updates
    Zero1,
    /// FSDP2 with reshard_after_forward=False: parameters stay whole from the forward to the backward pass
    Zero2,
}

/// Types that gradients are sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SendAs {
    /// bf16_compress_hook
    Bf16,
    /// fp16_compress_hook
    Fp16,
}

/// `steptime validate`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime validate examples
    steptime validate examples --host leave-one-out --json
    steptime validate --replay-only *.pt.trace.json.gz")]
pub struct Validate {
    /// Recordings, or folders of recordings
    #[arg(required = true, value_name = "RECORDING")]
    pub recordings: Vec<PathBuf>,
    /// Where the host's times come from: `own`, `default` (brought to the host of a recording that holds a probe), a
    /// profile's file, or for each recording a profile fitted on all other architectures
    #[arg(long, value_name = "own|default|FILE|leave-one-out", default_value = "own", value_parser = any_host)]
    pub host: HostChoice,
    /// Where kernel times come from: the recordings, or a device profile (a shipped one's name, or a folder)
    #[arg(long, value_name = "measured|NAME|FOLDER", default_value = "measured")]
    pub kernels: String,
    /// How kernels are priced.
    #[command(flatten)]
    pub pricing: Pricing,
    /// The state of the process to predict: once a profiler has run in it, every runtime call takes longer
    #[arg(long, value_enum, default_value_t = ProcessChoice::Auto)]
    pub process: ProcessChoice,
    /// Predict each step from its execution trace alone; needs --kernels NAME, and --host other than own
    #[arg(long)]
    pub lone: bool,
    /// Of jobs with a description each: put what a planner says of their tables beside the measured step, and beside what is
    /// predicted from the description; needs --kernels NAME and --model
    #[arg(long, value_enum, requires = "model")]
    pub planner: Option<Planner>,
    /// The description of the jobs' model (.toml), or a folder of descriptions that are named like the models of `meta.json`; may be
    /// given several times
    #[arg(long, value_name = "FILE|FOLDER", requires = "planner")]
    pub model: Vec<PathBuf>,
    /// Only replay what was recorded, the profiler's cost left in: of any trace, no measured step needed
    #[arg(long)]
    pub replay_only: bool,
    /// How to print it.
    #[command(flatten)]
    pub form: Form,
}

/// Whose planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Planner {
    /// TorchRec's `EmbeddingPerfEstimator` with its default bandwidths
    Torchrec,
}
