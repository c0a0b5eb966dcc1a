//! Step and rank of an input.

use clap::Args;
use serde::Deserialize;

/// Step and rank of an input.
#[derive(Debug, Args, Deserialize)]
pub struct Part {
    /// Only this step, by its number
    #[arg(long, value_name = "N")]
    pub step: Option<u32>,
    /// This rank, if there are several [default: the lowest]
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
}
