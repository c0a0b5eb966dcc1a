//! The program `steptime-bench`: measures the operators on this machine.

#![forbid(unsafe_code)]

mod arguments;
mod product;
mod report;
mod run;

use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

/// Error that ends the program.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run::run(&arguments::Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a value as JSON, or its text.
fn print<T: Serialize>(json: bool, value: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
    let text = if json { serde_json::to_string_pretty(value)? + "\n" } else { text(value) };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has closed the output.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
