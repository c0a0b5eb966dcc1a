//! `steptime view`.

use std::path::PathBuf;

use clap::Args;

use super::{OutputFile, Whom};

/// `steptime view`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime view examples/dlrm_default_2048
    steptime view examples/dlrm_default_2048 -o report.html
    steptime view before/ --against after/ --device h200 -o report.html

Without -o the page is served on this machine alone, at an address that holds a token, until Ctrl-C; then other GPUs can be
chosen and changes tried on it. With -o it is one file that loads nothing and asks nobody.")]
pub struct View {
    /// A recording, a trace, or an execution trace
    pub input: PathBuf,
    /// Another recording, to be compared with it
    #[arg(long, value_name = "INPUT")]
    pub against: Option<PathBuf>,
    /// Write the page to a file
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<OutputFile>,
    /// The port to serve it on; 0 for any that is free
    #[arg(long, value_name = "N", default_value_t = 7878, conflicts_with = "output")]
    pub port: u16,
    /// Do not open a browser
    #[arg(long, conflicts_with = "output")]
    pub no_open: bool,
    /// Where it runs.
    #[command(flatten)]
    pub whom: Whom,
}
