//! `steptime validate`.

mod jobs_report;
mod planner;
mod report;

use std::path::PathBuf;

use clap::Args;
use clap::CommandFactory;
use clap::ValueEnum;
use clap::error::ErrorKind;
use rayon::prelude::*;
use serde::Deserialize;
use steptime_answers::{
    JobValidationReport, ValidationReport, job::JobValidationRow, validate::ValidationSettings,
};
use steptime_predict::{Basis, Kernels, RankSet, validate};
use steptime_trace::{Options, Want};

use super::pricing::DevicePricing;
use super::{Failure, host_source, load, replay};
use crate::cli::{Form, HostChoice, Pricing, ProcessChoice, any_host, required_host};
use crate::commands::Cli;
use crate::console::Console;
use crate::progress;

/// `steptime validate`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime validate examples
    steptime validate examples --host leave-one-out --json
    steptime validate --replay-only *.pt.trace.json.gz")]
pub struct Validate {
    /// Recordings, or folders of recordings
    #[arg(required = true, value_name = "RECORDING")]
    pub recordings: Vec<PathBuf>,
    /// Source of host times: `own` (those of each recording), `default` (a typical host, shipped with steptime, rescaled to the host of a
    /// recording with a probe), a profile's file, or `leave-one-out`: for each recording a profile fitted on all other architectures
    #[arg(long, value_name = "own|default|FILE|leave-one-out", default_value = "own", value_parser = any_host)]
    #[serde(deserialize_with = "required_host")]
    pub host: HostChoice,
    /// Source of kernel times: the recordings, or a device profile (a shipped one's name, or a folder)
    #[arg(long, value_name = "measured|NAME|FOLDER", default_value = "measured")]
    pub kernels: String,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// State of the predicted process: after a profiler has run in it, every runtime call takes longer
    #[arg(long, value_enum, default_value_t = ProcessChoice::Auto)]
    pub process: ProcessChoice,
    /// Predict each step from its execution trace alone; needs --kernels NAME, and --host other than own
    #[arg(long)]
    pub lone: bool,
    /// Planner whose estimate for the tables of described jobs is compared with the measured step and with the prediction
    /// from the description; needs --kernels NAME and --model
    #[arg(long, value_enum, requires = "model")]
    pub planner: Option<Planner>,
    /// Description of the jobs' model (.toml), or a folder of descriptions named like the models in `meta.json`; may be
    /// given several times
    #[arg(long, value_name = "FILE|FOLDER", requires = "planner")]
    pub model: Vec<PathBuf>,
    /// Only replay the recorded times, with the profiler's cost: for any trace, without a measured step
    #[arg(long)]
    pub replay_only: bool,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

/// Planners of table placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planner {
    /// TorchRec's `EmbeddingPerfEstimator` with its default bandwidths
    Torchrec,
}

pub fn run(args: &Validate, console: &Console<'_>) -> Result<(), Failure> {
    if args.replay_only {
        return replay::run(&args.recordings, args.form, console);
    }
    let jobs = load::jobs(&args.recordings)?;
    if args.planner.is_some() {
        return planner::run(args, &jobs, console);
    }
    if !jobs.is_empty() {
        return validate_jobs(args, &jobs, console);
    }
    let mode = host_source::mode(&args.host)?;
    check(args)?;
    let priced = match args.kernels.as_str() {
        "measured" => None,
        name => Some(DevicePricing::find(name, &args.pricing)?),
    };
    let want = if priced.is_some() { Want::STEP } else { Want::TIMING };
    let mut recordings = load::recordings(&args.recordings, want)?;
    for recorded in &mut recordings {
        recorded.process = host_source::process(args.process).unwrap_or(recorded.process);
    }
    let mut lone = if args.lone { load::execution_traces(&args.recordings)? } else { Vec::new() };
    for (lone, recorded) in lone.iter_mut().zip(&recordings) {
        lone.process = recorded.process;
    }
    let basis = if args.lone { Basis::ExecutionTraces(&lone) } else { Basis::Recordings };
    let kernels = priced.as_ref().map_or(Kernels::Measured, DevicePricing::kernels);
    let validation = progress::spin("simulating", || validate(&recordings, basis, &mode, &kernels))?;
    let asked =
        ValidationSettings { host: args.host.label(), kernels: args.kernels.clone(), lone: args.lone };
    let answer = ValidationReport::from_validation(&validation, asked);
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Validates the steps of jobs.
fn validate_jobs(args: &Validate, jobs: &[PathBuf], console: &Console<'_>) -> Result<(), Failure> {
    if args.host != HostChoice::Own || args.kernels != "measured" || args.lone {
        let words = "the ranks of a job are predicted together from their own times: --host, --kernels and --lone are for single \
                     recordings";
        return Err(Cli::command().error(ErrorKind::ArgumentConflict, words).into());
    }
    let times = Options { want: Want::TIMING, ..Options::default() };
    let row = |path: &PathBuf| JobValidationRow::predict(&RankSet::open_with(path, &times)?);
    let rows: Result<Vec<JobValidationRow>, steptime_predict::Error> =
        progress::spin("simulating", || jobs.par_iter().map(row).collect());
    let answer = JobValidationReport::from_rows(rows?);
    Ok(console.print_answer(args.form, &answer, jobs_report::text, jobs_report::csv)?)
}

/// Checks the options of `--lone`: an execution trace has no times of its own.
fn check(args: &Validate) -> Result<(), Failure> {
    if !args.lone {
        return Ok(());
    }
    let wrong = if args.kernels == "measured" {
        "--lone has no measured kernels: it needs --kernels NAME"
    } else if args.host == HostChoice::Own {
        "--lone has no host times of its own: it needs --host leave-one-out, default or FILE"
    } else {
        return Ok(());
    };
    Err(Cli::command().error(ErrorKind::MissingRequiredArgument, wrong).into())
}
