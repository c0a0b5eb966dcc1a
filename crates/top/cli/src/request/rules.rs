//! Rules of the command line's definition: values of an argument, and which arguments are required or exclude one another.

use std::error::Error;

use clap::Arg;
use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Map, Value};

use super::name;
use crate::failure::UsageError;

/// Value of every argument in the check.
const ANY: &str = "given";
/// Name of the argument in the check of a value.
const VALUE: &str = "value";

/// Checks that the given arguments go together, and that none is missing. Their values do not matter.
///
/// # Errors
/// Names the arguments.
pub fn check_names(command: &clap::Command, given: &Map<String, Value>) -> Result<(), UsageError> {
    let words = command.get_arguments().filter(|&argument| given.contains_key(&name(argument))).map(word);
    let words: Vec<String> = std::iter::once(command.get_name().to_owned()).chain(words).collect();
    let any_value = |argument: Arg| match argument.get_action().takes_values() {
        true => argument.value_parser(ValueParser::string()),
        false => argument,
    };
    match command.clone().mut_args(any_value).try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) => Err(UsageError(message(&error))),
    }
}

/// Checks a value by the parser of its argument.
///
/// # Errors
/// The reason.
pub fn check_value(argument: &Arg, text: &str) -> Result<(), String> {
    let alone = Arg::new(VALUE).long(VALUE).value_parser(argument.get_value_parser().clone());
    let words = [VALUE.to_owned(), format!("--{VALUE}={text}")];
    match clap::Command::new(VALUE).arg(alone).try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.source().unwrap_or(&error).to_string()),
    }
}

/// Returns an argument as a word of a command line, without its value.
fn word(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("--{long}={ANY}"),
        Some(long) => format!("--{long}"),
        None => ANY.to_owned(),
    }
}

fn message(error: &clap::Error) -> String {
    let (subjects, others) = (names(error, ContextKind::InvalidArg), names(error, ContextKind::PriorArg));
    match error.kind() {
        ErrorKind::ArgumentConflict => format!("{subjects} excludes {others}: give one of them"),
        ErrorKind::MissingRequiredArgument => format!("{subjects} is required"),
        _ => error.to_string(),
    }
}

/// Returns the names of arguments in an error, as options where they are options.
fn names(error: &clap::Error, kind: ContextKind) -> String {
    let usages = match error.get(kind) {
        Some(ContextValue::String(usage)) => std::slice::from_ref(usage),
        Some(ContextValue::Strings(usages)) => usages,
        _ => &[],
    };
    // A usage is `--batch <N>`, `<INPUT>` or `<RECORDING>...`.
    let name = |usage: &String| match usage.strip_prefix("--") {
        Some(option) => format!("--{}", option.split([' ', '=', '[']).next().unwrap_or(option)),
        None => usage.trim_matches(['<', '>', '.', '[', ']']).to_lowercase(),
    };
    usages.iter().map(name).collect::<Vec<_>>().join(" and ")
}
