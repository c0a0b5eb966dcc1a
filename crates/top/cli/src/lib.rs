//! The command line of steptime as a library: the program `steptime` runs it, and the Python package calls it.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod console;
mod failure;
mod input_cache;
mod nearest;
mod output;
mod progress;
mod report;
mod request;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use crate::commands::{Cli, Command};
use crate::console::Console;
pub use crate::failure::Refusal;
use crate::failure::{Failure, ProgramFailed};
pub use crate::input_cache::CachedInput;
pub use crate::progress::Progress;
pub use crate::report::table::Columns;
pub use crate::request::Request;

/// Runs a command line, the program's name first, and returns the exit code: 0 fine, 1 failed on the input, 2 wrong usage.
/// A program that was started in place of a command gives its own.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let done = parsed(arguments).and_then(|typed| typed.command.run(&Console::terminal()));
    let Err(failure) = done else { return 0 };
    if let Some(ProgramFailed { code, .. }) = failure.downcast_ref() {
        return *code;
    }
    match failure.downcast_ref::<clap::Error>() {
        // Help and the version are printed this way too; a failure to print cannot be reported.
        Some(refusal) => {
            let _ = refusal.print();
            u8::try_from(refusal.exit_code()).unwrap_or(2)
        }
        None => {
            output::print_error(&*failure);
            1
        }
    }
}

/// Opens an input with all parts that a query may need: its files are not read again.
///
/// # Errors
/// If it cannot be read. The message names options as arguments of Python.
pub fn open(input: &CachedInput) -> Result<(), Refusal> {
    input.open().map_err(|refused| refused.in_python(None))
}

/// Runs the command of a request and returns the output as text: that of the program with the same arguments.
///
/// # Errors
/// If the program would print an error. Its message names options as arguments of Python.
pub fn ask(request: &Request<'_>) -> Result<String, Refusal> {
    let console = Console::program(request.given, request.opened);
    answered(request.read(), console).map_err(|refused| refused.in_python(request.definition().as_ref()))
}

/// Runs a command line, the program's name first, without standard input, and returns the output as text.
///
/// # Errors
/// If the program would print an error; the message is the same.
pub fn capture(arguments: impl IntoIterator<Item = OsString>) -> Result<String, Refusal> {
    answered(parsed(arguments).map(|typed| typed.command), Console::program("", &[]))
}

fn answered(command: Result<Command, Failure>, console: Console<'_>) -> Result<String, Refusal> {
    output::leave_signals_alone();
    match command.and_then(|command| command.run(&console)) {
        Ok(()) => Ok(console.into_text()),
        Err(failure) => Err(Refusal::from_failure(&failure)),
    }
}

/// Returns the causes of device idle time: the key in an answer, and the printed name.
pub fn idle_causes() -> impl Iterator<Item = (&'static str, &'static str)> {
    steptime_sim::IdleCause::ALL.into_iter().map(|cause| (cause.key(), cause.name()))
}

fn parsed(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Failure> {
    let mut typed = Cli::command().try_get_matches_from(arguments)?;
    output::separate_typed(&typed)?;
    Ok(Cli::from_arg_matches_mut(&mut typed)?)
}
