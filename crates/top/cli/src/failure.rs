//! Failures of commands, as errors and by kind.

use std::error::Error as StdError;
use std::{fmt, io};

use crate::output;

/// Error that made a command fail; printed as it is.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// Failure of a program that this one started, and that printed its reason.
#[derive(Debug)]
pub struct ProgramFailed {
    pub name: &'static str,
    pub code: u8,
}

impl fmt::Display for ProgramFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with exit code {}", self.name, self.code)
    }
}

impl StdError for ProgramFailed {}

/// Wrong arguments of a [`Request`](crate::Request). The message names options as on the command line.
#[derive(Debug)]
pub struct UsageError(pub String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for UsageError {}

/// Reasons why [`ask`](crate::ask) has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The command line is invalid: an unknown option, a value out of range.
    Usage(String),
    /// A missing file.
    NotFound(String),
    /// A change that does not apply to the step.
    NotApplicable(String),
    /// Any other failure: the input is damaged or incomplete, or an output cannot be written.
    Input(String),
}

impl Refusal {
    /// Classifies a failure.
    pub(crate) fn from_failure(failure: &Failure) -> Refusal {
        if let Some(usage) = failure.downcast_ref::<clap::Error>() {
            let text = usage.render().to_string();
            // The rest is the usage of the program, which does not apply to a call from Python.
            let first = text.split("\n\n").next().unwrap_or_default();
            return Refusal::Usage(first.trim_start_matches("error: ").trim_end().to_owned());
        }
        if let Some(UsageError(words)) = failure.downcast_ref() {
            return Refusal::Usage(words.clone());
        }
        let words = output::words(&**failure);
        match failure.downcast_ref::<steptime_predict::Error>() {
            Some(steptime_predict::Error::NoSuchDevice { .. }) => Refusal::Usage(words),
            Some(steptime_predict::Error::Rewrite { .. }) => Refusal::NotApplicable(words),
            _ if is_not_found(&**failure) => Refusal::NotFound(words),
            _ => Refusal::Input(words),
        }
    }
}

/// Whether the root cause is a missing file.
fn is_not_found(failure: &(dyn StdError + 'static)) -> bool {
    let mut bottom = failure;
    while let Some(cause) = bottom.source() {
        bottom = cause;
    }
    bottom.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}
