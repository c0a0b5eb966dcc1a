//! One file per command: reads the input, calls the library, passes the answer to a report.

mod choose;
mod collectives;
mod compare;
mod device;
mod forward;
mod gather_plan;
mod host;
mod host_source;
mod ingest;
mod inspect;
mod kernels;
mod load;
mod planner;
mod predict;
mod pricing;
mod replay;
mod roofline;
mod scale;
mod shard;
mod shell;
mod sweep;
mod validate;
mod view;
mod what_if;

use crate::cli::Command;
use crate::console::Console;
pub use crate::failure::Failure;

/// Runs a command, with its output on the console.
pub fn run(command: Command, console: &Console<'_>) -> Result<(), Failure> {
    match command {
        Command::Inspect(args) => inspect::run(&args, console),
        Command::Host(args) => host::run(&args, console),
        Command::Device(args) => device::run(&args, console),
        Command::Kernels(args) => kernels::run(&args, console),
        Command::Collectives(args) => collectives::run(&args, console),
        Command::Shard(args) => shard::run(&args, console),
        Command::Scale(args) => scale::run(&args, console),
        Command::Roofline(args) => roofline::run(&args, console),
        Command::Predict(args) => predict::run(&args, console),
        Command::WhatIf(args) => what_if::run(&args, console),
        Command::Explain(args) => what_if::explain(&args, console),
        Command::Choose(args) => choose::run(&args, console),
        Command::Sweep(args) => sweep::run(&args, console),
        Command::Ingest(args) => ingest::run(&args, console),
        Command::Query(_) => ingest::query(),
        Command::Compare(args) => compare::run(&args, console),
        Command::Validate(args) => validate::run(&args, console),
        Command::Train(args) => forward::train(&args),
        Command::Bench(args) => forward::bench(&args),
        Command::Gemm(args) => forward::gemm(&args),
        Command::GatherPlan(args) => gather_plan::run(&args, console),
        Command::Completions { shell } => shell::completions(shell, console),
        Command::View(args) => view::run(&args, console),
        Command::Man { folder } => shell::manual(&folder),
    }
}
