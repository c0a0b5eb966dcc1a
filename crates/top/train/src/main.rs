//! The program `steptime-train`: trains a described model, and compares its steps with their prediction.

#![forbid(unsafe_code)]

mod arguments;
mod batches;
mod checkpoints;
mod convert;
mod data;
mod error;
mod evaluate;
mod feed;
mod fit;
mod host_memory;
mod host_tables;
mod measured;
mod memory;
mod narrow_exchanges;
mod placement;
mod plan;
mod plan_choice;
mod planted;
mod predicted;
mod processor;
mod progress;
mod ranks;
mod recording;
mod report;
mod row_copies;
mod synthetic;
mod table;
mod train;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

use arguments::{Arguments, Command};

/// Error that ends the program.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Some(Command::Data(format)) => convert::run(format),
        None => train::run(&arguments.train),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", message(&*failure));
            ExitCode::FAILURE
        }
    }
}

/// The message of an error, with those causes that it does not have already.
fn message(failure: &(dyn std::error::Error + 'static)) -> String {
    let mut message = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some causes end with a line break.
        let text = text.trim_end();
        if !message.contains(text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

/// Prints a value as JSON, or its text.
fn print<T: Serialize>(json: bool, value: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
    let text = if json { serde_json::to_string(value)? + "\n" } else { text(value) };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has closed the output.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
