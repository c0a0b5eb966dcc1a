//! Arguments by name, compared with those of the command line.

mod messages;
mod options;
mod values;

use serde_json::Value;

use super::Request;
use crate::commands::Command;
use crate::failure::Refusal;

fn read(command: &str, arguments: &Value) -> Result<Command, String> {
    let text = arguments.to_string();
    let request = Request { command, arguments: &text, given: "", opened: &[] };
    request.read().map_err(|failure| {
        match Refusal::from_failure(&failure).in_python(request.definition().as_ref()) {
            Refusal::Usage(words) => words,
            other => panic!("{other:?}"),
        }
    })
}

fn refused(command: &str, arguments: &Value) -> String {
    read(command, arguments).expect_err("refused")
}

/// Returns every command, by the words of its name.
fn commands(of: &clap::Command, before: &str) -> Vec<(String, clap::Command)> {
    let each = of.get_subcommands().flat_map(|command| {
        let name = format!("{before}{}", command.get_name());
        match command.has_subcommands() {
            true => commands(command, &format!("{name} ")),
            false => vec![(name, command.clone())],
        }
    });
    each.collect()
}
