//! `steptime explain`.

mod report;

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use steptime_answers::ExplainReport;

use super::Failure;
use super::what_if::{open, question};
use crate::cli::{Form, Target};
use crate::console::Console;
use crate::progress;

/// `steptime explain`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime explain examples/dlrm_default_2048
    steptime explain examples/resnet50_32 --json")]
pub struct Explain {
    /// A recording with an execution trace, an execution trace, or the description of a model (.toml)
    pub input: PathBuf,
    /// Device, host and part of the input.
    #[command(flatten)]
    pub whom: Target,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

/// Runs `explain`.
pub fn run(args: &Explain, console: &Console<'_>) -> Result<(), Failure> {
    let step = open(console, &args.input, &args.whom)?;
    let question = question(&step, &args.whom)?;
    let found = progress::spin("simulating", || question.explain())?;
    Ok(console.print_answer(
        args.form,
        &ExplainReport::from_explanation(&found, &step),
        report::text,
        report::csv,
    )?)
}
