//! Where text and files go out: a closed pipe is no error, nothing that steers a terminal is printed, and no file is left
//! half written.

mod file;
mod harmless;
mod temporary;

use std::error::Error as StdError;
use std::io::{self, ErrorKind, Write};

pub use file::{spares, write_file};
pub use harmless::name;
use serde::Serialize;

use crate::cli::Form;
use crate::report::csv::Table;

/// Prints a report.
pub fn print(text: &str) -> io::Result<()> {
    print_while_open(text).map(|_| ())
}

/// Prints one of many answers; `false` where nobody reads them any more.
pub fn print_while_open(text: &str) -> io::Result<bool> {
    write_out(&harmless::lines(text))
}

/// Prints a value as JSON.
pub fn print_json<T: Serialize>(value: &T) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    write_out(&(harmless::json(&text) + "\n")).map(|_| ())
}

/// Prints a value as one line of JSON; `false` where nobody reads them any more.
pub fn print_json_line<T: Serialize>(value: &T) -> io::Result<bool> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    write_out(&(harmless::json(&text) + "\n"))
}

/// Prints an answer as it was asked for: as text, JSON or CSV.
pub fn print_answer<T: Serialize>(
    form: Form,
    answer: &T,
    text: impl FnOnce(&T) -> String,
    table: impl FnOnce(&T) -> Table,
) -> io::Result<()> {
    match form {
        Form { json: true, .. } => print_json(answer),
        Form { csv: true, .. } => print(&table(answer).text()),
        _ => print(&text(answer)),
    }
}

fn write_out(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Says on stderr what failed, with those causes that the message does not name itself.
pub fn complain(failure: &dyn StdError) {
    let mut text = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    let _ = writeln!(io::stderr(), "error: {}", harmless::message(text.trim_end()));
}

/// Says on stderr what the user should know.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", harmless::message(text));
}
