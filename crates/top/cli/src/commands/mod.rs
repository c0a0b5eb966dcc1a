//! One file a command: reads the input, asks the library, hands the answer to a report.

mod bench;
mod compare;
mod device;
mod gather_plan;
mod gemm;
mod host;
mod inspect;
mod kernels;
mod load;
mod predict;
mod pricing;
mod replay;
mod roofline;
mod shell;
mod source;
mod sweep;
mod validate;
mod what_if;

use std::error::Error as StdError;

use crate::cli::{Cli, Command};

/// Whatever made a command fail; printed as it is.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// Runs what was typed.
pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Inspect(args) => inspect::run(&args),
        Command::Host(args) => host::run(&args),
        Command::Device(args) => device::run(&args),
        Command::Kernels(args) => kernels::run(&args),
        Command::Roofline(args) => roofline::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::WhatIf(args) => what_if::run(&args),
        Command::Explain(args) => what_if::explain(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Gemm(args) => gemm::run(&args),
        Command::GatherPlan(args) => gather_plan::run(&args),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { folder } => shell::manual(&folder),
    }
}
