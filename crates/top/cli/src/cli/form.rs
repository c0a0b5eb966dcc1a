//! Output format of an answer.

use clap::Args;
use serde::Deserialize;

/// Output format of an answer; text by default.
#[derive(Debug, Clone, Copy, Args, Deserialize)]
pub struct Form {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the answer's tables as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}
