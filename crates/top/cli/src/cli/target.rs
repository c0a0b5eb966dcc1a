//! GPU, host and part of the input.

use clap::Args;
use serde::Deserialize;

use super::{HostChoice, Part, Pricing, one_host, optional_host};

/// GPU, host and part of the input.
#[derive(Debug, Args, Deserialize)]
pub struct Target {
    /// GPU to predict kernel times for, instead of the measured ones: a shipped profile's name, or a profile's folder
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
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
}
