//! `steptime kernels` and `steptime roofline`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Deserialize;

use super::{Form, OutputFile, Part, Pricing};

/// `steptime kernels`.
#[derive(Debug, Subcommand, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelsCommand {
    /// Predict the kernels of ops and their times: one JSON query per line on standard input, one answer per line
    #[command(after_help = r#"EXAMPLE
    echo '{"op":"aten::addmm","shapes":[[1024],[2048,512],[512,1024]],"dtype":"float"}' |
        steptime kernels predict --device h200 --json

A query; all keys but op and shapes may be left out:
    {"op":"aten::addmm","pass":"forward|backward","shapes":[[1024],[2048,512],[512,1024]],
     "strides":[...],"dtype":"float","args":[...],"cache":"cold|warm","indices":{"zipf":1.05}}"#)]
    Predict {
        /// A shipped profile's name, or a profile's folder
        #[arg(long, value_name = "NAME|FOLDER")]
        device: String,
        /// Kernel pricing.
        #[command(flatten)]
        pricing: Pricing,
        /// Allow queries to name files of indices to read
        #[arg(long)]
        files: bool,
        /// Output format.
        #[command(flatten)]
        form: Form,
    },
}

/// `steptime roofline`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime roofline examples/dlrm_default_2048
    steptime roofline examples/resnet50_32 --device a100 --plot roofline.svg")]
pub struct Roofline {
    /// A recording with its execution trace, an execution trace, or the description of a model (.toml); of any other trace from a GPU,
    /// kernels are shown by name
    pub input: PathBuf,
    /// GPU to predict kernel times for [default: measured times, against the recorded GPU]
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Write a plot
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<OutputFile>,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
    /// Step and rank.
    #[command(flatten)]
    pub part: Part,
}
