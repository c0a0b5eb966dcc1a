//! `steptime choose`.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use super::{Form, HostChoice, Part, Pricing, one_host, optional_host};

/// `steptime choose`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime choose examples/dlrm_default_2048
    steptime choose examples/resnet50_32 --device h100,a100,l4,t4 --price prices.toml
    steptime choose examples/models/dcn_v2.toml --device h200,l40s --json

Prices are TOML, one line per GPU by its profile's name, per GPU-hour and all in one currency:
    h100 = 2.50
    l4 = 0.70")]
pub struct Choose {
    /// A recording with an execution trace, an execution trace, or the description of a model (.toml)
    pub input: PathBuf,
    /// GPUs, comma-separated: names of shipped profiles, folders of profiles, or `all` shipped ones
    #[arg(long, value_name = "NAME|FOLDER,..|all", value_delimiter = ',', default_value = "all")]
    pub device: Vec<String>,
    /// Prices per GPU-hour; GPUs are then listed by cost
    #[arg(long, value_name = "FILE.toml")]
    pub price: Option<PathBuf>,
    /// Samples in the recorded batch [default: as noted in the recording]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub recorded_batch: Option<u64>,
    /// Source of host times: `own` (those of the recording), `default` (a typical host, shipped with steptime), a profile's file, a
    /// probe's file, or a recording with a probe
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    #[serde(deserialize_with = "optional_host")]
    pub host: Option<HostChoice>,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Step and rank.
    #[command(flatten)]
    pub part: Part,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}
