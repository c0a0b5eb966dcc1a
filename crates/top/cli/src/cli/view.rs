//! `steptime view`.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use super::{OutputFile, Target};

/// `steptime view`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime view examples/dlrm_default_2048
    steptime view examples/dlrm_default_2048 -o report.html
    steptime view before/ --against after/ --device h200 -o report.html

Without -o the page is served to this machine only, at an address with a token, until Ctrl-C; other GPUs and changes can be tried on \
it. With -o the page is one file that loads nothing and makes no request.")]
pub struct View {
    /// A recording, a trace, an execution trace, or the description of a model (.toml)
    pub input: PathBuf,
    /// Another recording to compare with it
    #[arg(long, value_name = "INPUT")]
    pub against: Option<PathBuf>,
    /// Write the page to a file
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<OutputFile>,
    /// Port to serve on; 0 for any free one
    #[arg(long, value_name = "N", default_value_t = 7878, conflicts_with = "output")]
    pub port: u16,
    /// Do not open a browser
    #[arg(long, conflicts_with = "output")]
    pub no_open: bool,
    /// Device, host and part of the input.
    #[command(flatten)]
    pub whom: Target,
}
