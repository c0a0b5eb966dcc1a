//! Output of text and files: a closed pipe is not an error, no terminal control characters are printed, and no file is
//! left half written.

mod file;
mod overwrite_check;
mod sanitized;
mod temporary;

use std::error::Error as StdError;
use std::io::{self, ErrorKind, Write};

pub use file::{check_writable, write_file};
pub use overwrite_check::{path_of, separate, separate_all, separate_typed};
pub use sanitized::{json as sanitized_json, lines as sanitized_lines, name};
pub use temporary::{leave_signals_alone, uninterrupted};

/// Writes to standard output; returns `false` if the reader has closed it.
pub fn write_out(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the message of a failure, followed by the causes that it does not contain.
pub fn words(failure: &dyn StdError) -> String {
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
    sanitized::message(text.trim_end())
}

/// Prints an error to stderr.
pub fn print_error(failure: &dyn StdError) {
    let _ = writeln!(io::stderr(), "error: {}", words(failure));
}

/// Prints a warning to stderr.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", sanitized::message(text));
}
