//! Why a command failed, as it is passed along and as it is told by kind.

use std::error::Error as StdError;
use std::io;

use crate::output;

/// Whatever made a command fail; printed as it is.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// Why [`ask`](crate::ask) has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The question is none: an unknown option, a value out of range.
    Usage(String),
    /// A file that is not there.
    NotFound(String),
    /// A change that does not apply to the step.
    NotApplicable(String),
    /// Whatever else: the input is damaged, holds too little, or cannot be written.
    Input(String),
}

impl Refusal {
    /// A failure by its kind.
    pub(crate) fn of(failure: &Failure) -> Refusal {
        if let Some(usage) = failure.downcast_ref::<clap::Error>() {
            let text = usage.render().to_string();
            // What follows says how the program is used, which is not how the question was asked.
            let first = text.split("\n\n").next().unwrap_or_default();
            return Refusal::Usage(first.trim_start_matches("error: ").trim_end().to_owned());
        }
        let words = output::words(&**failure);
        match failure.downcast_ref::<steptime::Error>() {
            Some(steptime::Error::NoSuchDevice { .. }) => Refusal::Usage(words),
            Some(steptime::Error::Rewrite { .. }) => Refusal::NotApplicable(words),
            _ if is_not_found(&**failure) => Refusal::NotFound(words),
            _ => Refusal::Input(words),
        }
    }
}

/// Whether a file that is not there is at the bottom of it.
fn is_not_found(failure: &(dyn StdError + 'static)) -> bool {
    let mut bottom = failure;
    while let Some(cause) = bottom.source() {
        bottom = cause;
    }
    bottom.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}
