//! Queries of a calling program: a command, and its arguments by name as JSON. They become the same arguments as the words of a command
//! line, by the same checks.

mod deserializer;
mod rules;
mod terms;
#[cfg(test)]
mod tests;

use clap::CommandFactory;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::deserializer::{Arguments, CommandPath};
use crate::cli::OutputFile;
use crate::commands::Cli;
use crate::commands::Command;
use crate::failure::{Failure, UsageError};
use crate::input_cache::CachedInput;
use crate::nearest::nearest;
use crate::output;

/// A query of a calling program.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Name of the command: `predict`, `device fit`.
    pub command: &'a str,
    /// The arguments, a JSON object. Names are those of the command line's options and operands, in snake case; `null`, `false` and `[]`
    /// mean that an argument is not given.
    pub arguments: &'a str,
    /// Text read instead of standard input.
    pub given: &'a str,
    /// Inputs that are not opened again.
    pub opened: &'a [&'a CachedInput],
}

impl Request<'_> {
    /// Returns the definition of the command, if there is one of its name.
    pub(crate) fn definition(&self) -> Option<clap::Command> {
        let all = Cli::command();
        self.command.split(' ').try_fold(&all, |command, word| command.find_subcommand(word)).cloned()
    }

    /// Reads the command and its arguments.
    ///
    /// # Errors
    /// If the command or an argument is unknown, an argument has a wrong value or excludes another one, or an output is among the inputs.
    pub(crate) fn read(&self) -> Result<Command, Failure> {
        let words: Vec<&str> = self.command.split(' ').collect();
        let command = self.definition();
        let command = command.ok_or_else(|| UsageError(format!("there is no command {:?}", self.command)))?;
        if let Some(inner) = command.get_subcommands().next() {
            let (own, inner) = (self.command, inner.get_name());
            return Err(
                UsageError(format!("{own} is a group of commands: name one, as {own} {inner}")).into()
            );
        }
        let command = &command;
        let given: Map<String, Value> = serde_json::from_str(self.arguments)
            .map_err(|error| UsageError(format!("the arguments are not a JSON object: {error}")))?;
        known(command, &given)?;
        let given: Map<String, Value> = given.into_iter().filter(|(_, value)| is_given(value)).collect();
        rules::check_names(command, &given)?;
        let arguments = Arguments { command, given: &given };
        let read = Command::deserialize(CommandPath { words: &words, arguments })
            .map_err(|refused| UsageError(refused.to_string()))?;
        separate(command, &given)?;
        Ok(read)
    }
}

/// Returns the name of an argument of the command line in a request.
pub fn name(argument: &clap::Arg) -> String {
    argument.get_long().unwrap_or(argument.get_id().as_str()).replace('-', "_")
}

fn is_given(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value.as_array().is_none_or(|list| !list.is_empty())
}

/// Checks that all names are arguments of the command; the error lists the near ones.
fn known(command: &clap::Command, given: &Map<String, Value>) -> Result<(), UsageError> {
    let names: Vec<String> = command.get_arguments().map(name).collect();
    let Some(unknown) = given.keys().find(|&key| !names.contains(key)) else { return Ok(()) };
    let meant = match nearest(unknown, names.iter().map(String::as_str)) {
        Some(near) => format!("is {near} meant?"),
        None => format!("there are {}", names.join(", ")),
    };
    Err(UsageError(format!("{unknown} is not an argument of {}: {meant}", command.get_name())))
}

/// Refuses outputs that are among the inputs, or are one file.
fn separate(command: &clap::Command, given: &Map<String, Value>) -> Result<(), steptime_predict::Error> {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for argument in command.get_arguments() {
        let value = given.get(&name(argument));
        let texts = value
            .into_iter()
            .flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        let texts = texts.filter_map(Value::as_str);
        if argument.get_value_parser().type_id() == std::any::TypeId::of::<OutputFile>() {
            outputs.extend(texts.map(|text| (argument.get_id().as_str(), text.as_ref())));
        } else {
            inputs.extend(texts.map(|text| output::path_of(text.as_ref())));
        }
    }
    output::separate_all(&outputs, &inputs)
}
