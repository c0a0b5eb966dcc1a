//! The command line of steptime: `inspect`, `host`, `device`, `predict`, `kernels`, `roofline`, `validate`,
//! `bench`, `gemm`, `gather-plan`.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod output;
mod progress;
mod report;

use std::process::ExitCode;

use clap::Parser;

/// Exit codes: 0 fine, 1 failed on the input, 2 wrong usage (clap's own).
fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(&*failure);
            ExitCode::FAILURE
        }
    }
}
