//! The command line, and the groups of options that several commands share.

mod changes;
mod form;
mod host_choice;
mod numbers;
mod output_file;
mod part;
mod pricing;
mod shard;
mod target;

pub use changes::{Changes, Fuse, Operators, Precision, optional_blocks, selection, size};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
pub use form::Form;
pub use host_choice::{HostChoice, ProcessChoice, any_host, one_host, optional_host, required_host};
pub use numbers::{positive, times_as_long};
pub use output_file::OutputFile;
pub use part::Part;
pub use pricing::{Models, Pricing};
pub use shard::{Shard, optional_shard, shard};
pub use target::Target;

use crate::commands::Command;

/// Predicts the time of a training step, explains it, and finds changes that shorten it.
#[derive(Debug, Parser)]
#[command(
    name = "steptime",
    version,
    max_term_width = 100,
    after_help = "EXAMPLE
    steptime predict examples/dlrm_default_2048

An INPUT is a recording (a folder with kineto.json.gz and meta.json), a Kineto trace, an execution trace, a folder with one of these \
for each rank, or a tar archive of traces; plain, .gz or .zst. A file that ends in .toml describes a model: it is read as the execution \
trace of a training step of that model."
)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Returns clap's error for options of a command that exclude one another.
pub fn usage(command: &str, words: &str) -> clap::Error {
    let mut all = Cli::command();
    all.build();
    let mut command = all.find_subcommand_mut(command).map_or_else(Cli::command, |found| found.clone());
    command.error(ErrorKind::ArgumentConflict, words)
}
