//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Tell how long a step takes, and where the time goes
    Predict(Predict),
    /// Compare predictions with measured step times
    Validate(Validate),
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
    steptime predict examples/resnet50_32 --host default --timeline step.json   # open in ui.perfetto.dev")]
pub struct Predict {
    /// A recording, a trace, or a folder of ranks
    pub input: PathBuf,
    /// Where the host's times come from: `own`, `default`, or a profile's file
    #[arg(long, value_name = "own|default|FILE", default_value = "own", value_parser = one_host)]
    pub host: HostChoice,
    /// Where kernel times come from
    #[arg(long, value_enum, default_value_t = Kernels::Measured)]
    pub kernels: Kernels,
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
    steptime validate examples --host leave-one-out --json")]
pub struct Validate {
    /// Recordings, or folders of recordings
    #[arg(required = true, value_name = "RECORDING")]
    pub recordings: Vec<PathBuf>,
    /// Where the host's times come from: `own`, `default`, a profile's file, or for each recording a profile
    /// fitted on all other models
    #[arg(long, value_name = "own|default|FILE|leave-one-out", default_value = "own", value_parser = any_host)]
    pub host: HostChoice,
    /// Where kernel times come from
    #[arg(long, value_enum, default_value_t = Kernels::Measured)]
    pub kernels: Kernels,
    /// The state of the process to predict: once a profiler has run in it, every runtime call takes longer
    #[arg(long, value_enum, default_value_t = ProcessChoice::Auto)]
    pub process: ProcessChoice,
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
    /// A profile fitted on all other models.
    LeaveOneOut,
    /// A profile.
    File(PathBuf),
}

/// Where kernel times come from.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Kernels {
    /// From the recording: the median of each kernel over the steps
    Measured,
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
    /// The published Algorithm 1, to compare with
    Paper,
    /// The plain sum of kernels, to compare with
    KernelSum,
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

impl Kernels {
    /// As it is typed.
    pub fn label(self) -> &'static str {
        match self {
            Kernels::Measured => "measured",
        }
    }
}

impl Method {
    /// As it is typed.
    pub fn label(self) -> &'static str {
        match self {
            Method::Simulate => "simulate",
            Method::Paper => "paper",
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

fn one_host(text: &str) -> Result<HostChoice, String> {
    match any_host(text)? {
        HostChoice::LeaveOneOut => Err("it needs several recordings: use `steptime validate`".into()),
        choice => Ok(choice),
    }
}
