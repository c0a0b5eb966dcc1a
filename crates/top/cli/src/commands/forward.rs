//! Commands that are programs of their own: `steptime train` is `steptime-train`; `steptime bench` and `steptime gemm` are `steptime-bench`.

use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsString;
use std::process::Command;

use clap::Args;

use super::Failure;
use crate::failure::ProgramFailed;

/// Arguments of a command that is a program of its own.
#[derive(Debug, Args)]
pub struct MovedCommand {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// A program that is installed beside this one.
struct Program {
    name: &'static str,
    /// Its package in the repository.
    package: &'static str,
    /// Its purpose.
    does: &'static str,
}

const BENCH: Program =
    Program { name: "steptime-bench", package: "steptime-bench-cli", does: "measures operators" };
const TRAIN: Program =
    Program { name: "steptime-train", package: "steptime-train-cli", does: "trains models" };

/// Runs `steptime-train` with the arguments of `steptime train`.
pub fn train(args: &MovedCommand) -> Result<(), Failure> {
    forward(&TRAIN, &args.arguments)
}

/// Runs `steptime-bench` with the arguments of `steptime bench`.
pub fn bench(args: &MovedCommand) -> Result<(), Failure> {
    forward(&BENCH, &args.arguments)
}

/// Runs `steptime-bench gemm` with the arguments of `steptime gemm plan`.
pub fn gemm(args: &MovedCommand) -> Result<(), Failure> {
    let sizes = args.arguments.iter().skip_while(|argument| *argument == "plan").cloned();
    forward(&BENCH, &[OsString::from("gemm")].into_iter().chain(sizes).collect::<Vec<_>>())
}

fn forward(to: &Program, arguments: &[OsString]) -> Result<(), Failure> {
    let Program { name, package, does } = to;
    let program = env::current_exe()?.with_file_name(format!("{name}{EXE_SUFFIX}"));
    if !program.is_file() {
        let typed = arguments.iter().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let words = format!(
            "{name}, which {does}, is not installed next to this program: in the repository, \
             cargo run --release -p {package} -- {typed}"
        );
        return Err(words.into());
    }
    let ended = Command::new(&program).args(arguments).status()?;
    match ended.code() {
        Some(0) => Ok(()),
        Some(code) => Err(ProgramFailed { name, code: u8::try_from(code).unwrap_or(1) }.into()),
        None => Err(format!("{}: {ended}", program.display()).into()),
    }
}
