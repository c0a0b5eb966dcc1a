//! `steptime bench` and `steptime gemm`, which are the program `steptime-bench` now.

use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsString;
use std::process::Command;

use super::Failure;
use crate::cli::MovedCommand;

/// Runs `steptime-bench` with the arguments of `steptime bench`.
pub fn run(args: &MovedCommand) -> Result<(), Failure> {
    start(&args.arguments)
}

/// Runs `steptime-bench gemm` with the arguments of `steptime gemm plan`.
pub fn gemm(args: &MovedCommand) -> Result<(), Failure> {
    let sizes = args.arguments.iter().skip_while(|argument| *argument == "plan").cloned();
    start(&[OsString::from("gemm")].into_iter().chain(sizes).collect::<Vec<_>>())
}

fn start(arguments: &[OsString]) -> Result<(), Failure> {
    let program = env::current_exe()?.with_file_name(format!("steptime-bench{EXE_SUFFIX}"));
    if !program.is_file() {
        let typed = arguments.iter().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let words = format!(
            "steptime-bench, which measures operators, is not installed next to this program: in the repository, \
             cargo run --release -p steptime-bench-cli -- {typed}"
        );
        return Err(words.into());
    }
    let ended = Command::new(&program).args(arguments).status()?;
    if ended.success() { Ok(()) } else { Err(format!("{}: {ended}", program.display()).into()) }
}
