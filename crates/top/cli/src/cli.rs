//! What can be typed.

mod bench;
mod bench_cuda;
mod gather_plan;

use std::path::{Path, PathBuf};

pub use bench::{Bench, BenchCpu, Gemm, Init, Op, Product, Shape};
pub use bench_cuda::{BenchCuda, CudaOp};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use gather_plan::GatherPlan;

/// Tells how long a training step takes, why, and what would make it shorter.
#[derive(Debug, Parser)]
#[command(
    name = "steptime",
    version,
    max_term_width = 100,
    after_help = "EXAMPLE
    steptime predict examples/dlrm_default_2048

An INPUT is a recording (a folder with kineto.json.gz and meta.json), a Kineto trace, an execution trace,
a folder with one of these for each rank, or a tar archive of traces; plain, .gz or .zst."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what is in an input: steps, threads, streams, time per op and per kernel, host overheads
    Inspect(Inspect),
    /// Fit and show host profiles: what the host side of a step costs
    #[command(subcommand)]
    Host(Host),
    /// Fit, list and show device profiles: what kernels cost on a GPU
    #[command(subcommand)]
    Device(Device),
    /// Predict single kernels
    #[command(subcommand)]
    Kernels(KernelsCommand),
    /// Show how far each kernel is from what the device could do, and what bounds it
    Roofline(Roofline),
    /// Tell how long a step takes, and where the time goes
    Predict(Predict),
    /// Compare predictions with measured step times
    Validate(Validate),
    /// Measure operators on this machine
    #[command(subcommand)]
    Bench(Bench),
    /// Show how matrix products are computed
    #[command(subcommand)]
    Gemm(Gemm),
    /// Predict what each launch order of embedding lookups reads from device memory, and why
    #[command(alias = "tiling")]
    GatherPlan(GatherPlan),
    /// Print a script that completes words in a shell
    #[command(after_help = "EXAMPLE
    steptime completions bash > ~/.local/share/bash-completion/completions/steptime")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one a command
    #[command(after_help = "EXAMPLE
    steptime man ~/.local/share/man/man1")]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

/// `steptime inspect`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime inspect examples/dlrm_default_2048
    steptime inspect traces/param_dlrm_8xV100 --rank 3 --json")]
pub struct Inspect {
    /// A recording, a trace, or a folder of ranks
    pub input: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Which step and rank.
    #[command(flatten)]
    pub part: Part,
}

/// Which part of an input.
#[derive(Debug, Args)]
pub struct Part {
    /// Only this step, by its number
    #[arg(long, value_name = "N")]
    pub step: Option<u32>,
    /// This rank, where there are several [default: the lowest]
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
}

/// `steptime host`.
#[derive(Debug, Subcommand)]
pub enum Host {
    /// Fit a host profile on recordings
    #[command(after_help = "EXAMPLE
    steptime host fit examples -o my-host.toml")]
    Fit {
        /// Recordings, or folders of recordings
        #[arg(required = true, value_name = "RECORDING")]
        recordings: Vec<PathBuf>,
        /// Recordings of other hosts: they add what ops take, brought to the speed of this one
        #[arg(long, num_args = 1.., value_name = "RECORDING")]
        others: Vec<PathBuf>,
        /// The profile to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Show what is in a host profile
    #[command(after_help = "EXAMPLE
    steptime host show
    steptime host show my-host.toml")]
    Show {
        /// The profile [default: the one that ships with steptime]
        file: Option<PathBuf>,
    },
}

/// `steptime predict`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime predict examples/dlrm_default_2048
    steptime predict examples/resnet50_32 --host default --timeline step.json   # open in ui.perfetto.dev
    steptime predict examples/dlrm_default_2048/et.json.gz --device h200        # no GPU, no measured time")]
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
    /// Price every kernel for a device: a shipped profile's name, or a profile's folder
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// How kernels are priced.
    #[command(flatten)]
    pub pricing: Pricing,
    /// The state of the process to predict: once a profiler has run in it, every runtime call takes longer
    #[arg(long, value_enum, default_value_t = ProcessChoice::Auto)]
    pub process: ProcessChoice,
    /// How the step time is computed
    #[arg(long, value_enum, default_value_t = Method::Simulate)]
    pub method: Method,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the predicted step beside the measured one, as a Chrome trace
    #[arg(long, value_name = "OUT.json")]
    pub timeline: Option<PathBuf>,
    /// Which step and rank.
    #[command(flatten)]
    pub part: Part,
    /// Leave the profiler's own cost in: predict the step as it was while profiled
    #[arg(long)]
    pub keep_profiler: bool,
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
    /// Only replay what was recorded, the profiler's cost left in: of any trace, no measured step needed
    #[arg(long)]
    pub replay_only: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Where the host's times come from.
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

/// How kernels are priced by a device profile.
#[derive(Debug, Args)]
pub struct Pricing {
    /// Which of the profile's models
    #[arg(long, value_enum, default_value_t = Models::Best)]
    pub models: Models,
    /// How the indices of embedding lookups are distributed: `uniform`, `zipf:A`, `folded-zipf:A` (numpy's, modulo the rows),
    /// or a file of indices, one a line (`file:PATH` where its name is one of these) [default: uniform]
    #[arg(long, value_name = "uniform|zipf:A|folded-zipf:A|FILE")]
    pub indices: Option<String>,
    /// Multiply matrices in TF32, as after torch.backends.cuda.matmul.allow_tf32 = True
    #[arg(long)]
    pub tf32: bool,
}

/// Which models of a device profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Models {
    /// For each family the one that cross-validation found best
    Best,
    /// The published method: its formulas for embeddings, concatenations and copies; networks like its own, less
    /// well trained, for matrix products and convolutions; the roofline for all else
    Paper,
    /// Formulas over the device's specification
    Analytic,
    /// Learnt from the sweep
    Learnt,
}

/// `steptime device`.
#[derive(Debug, Subcommand)]
pub enum Device {
    /// Fit a device profile on sweeps made by `python -m steptime.measure`
    #[command(after_help = "EXAMPLE
    python -m steptime.measure --out sweep.parquet --minutes 10     # on the GPU
    steptime device fit sweep.parquet -o profiles/my-gpu
    steptime device fit later.parquet --onto profiles/my-gpu -o profiles/my-gpu     # the first sweep is gone")]
    Fit {
        /// Sweeps of one GPU
        #[arg(required = true, value_name = "SWEEP")]
        sweeps: Vec<PathBuf>,
        /// Recordings of training steps on the same GPU: kernels as they are inside a step
        #[arg(long, value_name = "RECORDING", num_args = 1..)]
        steps: Vec<PathBuf>,
        /// The device's specification: the fields of `[device]` in a profile [default: what the sweep measured]
        #[arg(long, value_name = "FILE")]
        spec: Option<PathBuf>,
        /// A profile to improve, by a shipped one's name or its folder: what it knows is kept, and corrected for
        /// the kinds of calls that the sweeps hold
        #[arg(long, value_name = "NAME|FOLDER", conflicts_with = "spec")]
        onto: Option<String>,
        /// Recordings that the profile will be scored on: rows that run one of their kernels, at its sizes, are left out
        #[arg(long, value_name = "RECORDING", num_args = 1..)]
        without: Vec<PathBuf>,
        /// The profile's folder to write
        #[arg(short, long, value_name = "FOLDER")]
        output: PathBuf,
        /// How far to search for the multilayer perceptrons of the published method
        #[arg(long, value_enum, default_value_t = Search::Shipped)]
        search: Search,
        /// Seed of everything random
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// List the profiles that ship with steptime
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what is in a device profile: specification, families, models, errors, ranges
    Show {
        /// A shipped profile's name, or a profile's folder
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// How far to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// The subset that the shipped profile used
    Shipped,
    /// All of the published search space: days
    Full,
}

/// `steptime kernels`.
#[derive(Debug, Subcommand)]
pub enum KernelsCommand {
    /// Predict the kernels of ops: one JSON query a line on standard input, one answer a line
    #[command(after_help = r#"EXAMPLE
    echo '{"op":"aten::addmm","shapes":[[1024],[2048,512],[512,1024]],"dtype":"float"}' |
        steptime kernels predict --device h200 --json

A query: {"op":"aten::addmm","pass":"forward|backward","shapes":[[1024],[2048,512],[512,1024]],"strides":[...],
"dtype":"float","args":[...],"cache":"cold|warm","indices":{"zipf":1.05}}; all but op and shapes may be left out."#)]
    Predict {
        /// A shipped profile's name, or a profile's folder
        #[arg(long, value_name = "NAME|FOLDER")]
        device: String,
        /// How kernels are priced.
        #[command(flatten)]
        pricing: Pricing,
        /// Let queries name files of indices, which are read
        #[arg(long)]
        files: bool,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
}

/// `steptime roofline`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime roofline examples/dlrm_default_2048
    steptime roofline examples/resnet50_32 --device a100 --plot roofline.svg")]
pub struct Roofline {
    /// A recording with its execution trace, or an execution trace
    pub input: PathBuf,
    /// The device: kernels are priced for it. Without it, measured times against the device recorded on
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// How kernels are priced.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Write a plot
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Which step and rank.
    #[command(flatten)]
    pub part: Part,
}

/// The state of the process to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProcessChoice {
    /// As meta.json says, else profiled
    Auto,
    /// A profiler has run in it before
    Profiled,
    /// No profiler has ever run in it
    Fresh,
}

/// How the step time is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Replay threads, streams and waits in simulated time
    Simulate,
    /// The published Algorithm 1, fed with the profiler's cost as measured, to compare with
    Paper,
    /// The same, fed with the published cost of the profiler: 2 us a host event, 4 us a device event
    PaperPublished,
    /// The plain sum of kernels, to compare with
    KernelSum,
}

impl Pricing {
    /// The file of indices, where one is named.
    pub fn file(&self) -> Option<&Path> {
        self.indices.as_deref().map(Path::new)
    }
}

impl HostChoice {
    /// As it is typed.
    pub fn label(&self) -> String {
        match self {
            HostChoice::Own => "own".into(),
            HostChoice::Default => "default".into(),
            HostChoice::LeaveOneOut => "leave-one-out".into(),
            HostChoice::File(path) => path.display().to_string(),
        }
    }
}

impl Method {
    /// As it is typed.
    pub fn label(self) -> &'static str {
        match self {
            Method::Simulate => "simulate",
            Method::Paper => "paper",
            Method::PaperPublished => "paper-published",
            Method::KernelSum => "kernel-sum",
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
