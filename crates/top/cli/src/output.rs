//! Where text and files go out: a closed pipe is no error, nothing that steers a terminal is printed, and no file is left
//! half written.

mod file;
mod harmless;
mod places;
mod temporary;

use std::error::Error as StdError;
use std::io::{self, ErrorKind, Write};

pub use file::write_file;
pub use harmless::{json as harmless_json, lines as harmless_lines, name};
pub use places::{separate, separate_typed};
pub use temporary::{leave_signals_alone, uninterrupted};

/// Writes to standard output; `false` where nobody reads it any more.
pub fn write_out(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// What failed, with those causes that the message does not name itself.
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
    harmless::message(text.trim_end())
}

/// Says on stderr what failed.
pub fn complain(failure: &dyn StdError) {
    let _ = writeln!(io::stderr(), "error: {}", words(failure));
}

/// Says on stderr what the user should know.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", harmless::message(text));
}
