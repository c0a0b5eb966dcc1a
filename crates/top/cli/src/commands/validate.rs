//! `steptime validate`.

use std::path::PathBuf;

use clap::CommandFactory;
use clap::error::ErrorKind;
use rayon::prelude::*;
use steptime_answers::{
    JobValidationReport, ValidationReport, job::JobValidationRow, validate::ValidationSettings,
};
use steptime_predict::{Basis, Kernels, RankSet, validate};
use steptime_trace::{Options, Want};

use super::pricing::DevicePricing;
use super::{Failure, host_source, load, planner, replay};
use crate::cli::{Cli, HostChoice, Validate};
use crate::console::Console;
use crate::{progress, report};

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
    Ok(console.print_answer(args.form, &answer, report::validate::text, report::validate::csv)?)
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
    Ok(console.print_answer(args.form, &answer, report::job::validated, report::job::csv::validated)?)
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
