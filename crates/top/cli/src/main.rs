//! The program `steptime`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    steptime_cli::run(std::env::args_os()).into()
}
