//! `steptime inspect`.

mod execution_report;
mod overheads_report;
mod report;

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use steptime_answers::InspectReport;
use steptime_predict::Choice;

use super::{Failure, load};
use crate::cli::{Form, Part};
use crate::console::Console;
use crate::progress;

/// `steptime inspect`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime inspect examples/dlrm_default_2048
    steptime inspect traces/param_dlrm_8xV100 --rank 3 --json")]
pub struct Inspect {
    /// A recording, a trace, a folder of ranks, or the description of a model (.toml)
    pub input: PathBuf,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
    /// Step and rank.
    #[command(flatten)]
    pub part: Part,
}

pub fn run(args: &Inspect, console: &Console<'_>) -> Result<(), Failure> {
    let input = load::everything(&args.input)?;
    let choice = Choice { rank: args.part.rank, step: args.part.step };
    let answer = progress::spin("joining", || InspectReport::build(&input, &choice))?;
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}
