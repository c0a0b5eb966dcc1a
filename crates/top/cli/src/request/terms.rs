//! Messages for a program in Python: options of the command line become arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use clap::CommandFactory;

use crate::commands::Cli;
use crate::failure::Refusal;

/// Commands whose function in Python has another name.
const FUNCTIONS: [(&str, &str); 2] = [("whatif", "what_if"), ("scale", "scale_out")];

/// An option of the command line.
#[derive(Debug, Default)]
struct Term {
    /// Whether it takes a value.
    valued: bool,
    /// Words that are values of it, in any command.
    words: BTreeSet<String>,
    /// Beginnings of values, such as `zipf:`.
    beginnings: BTreeSet<String>,
}

/// The options of all commands, without `--`.
static TERMS: LazyLock<BTreeMap<String, Term>> = LazyLock::new(|| {
    let mut terms = BTreeMap::new();
    collect(&Cli::command(), &mut terms);
    if let Some(device) = terms.get_mut("device") {
        device.words.extend(steptime_predict::devices().map(str::to_owned));
    }
    terms
});

fn collect(command: &clap::Command, terms: &mut BTreeMap<String, Term>) {
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        let term = terms.entry(long.to_owned()).or_default();
        term.valued |= argument.get_action().takes_values();
        term.words.extend(argument.get_possible_values().iter().map(|value| value.get_name().to_owned()));
        let names =
            argument.get_value_names().unwrap_or_default().iter().flat_map(|names| names.split(['|', ',']));
        for value in names {
            match value.split_once(':') {
                Some((beginning, _)) => _ = term.beginnings.insert(format!("{beginning}:")),
                None => _ = term.words.insert(value.to_owned()),
            }
        }
    }
    command.get_subcommands().for_each(|command| collect(command, terms));
}

impl Refusal {
    /// Returns the refusal of a command with options named as arguments of Python: `device=` instead of `--device`.
    pub(crate) fn in_python(self, command: Option<&clap::Command>) -> Refusal {
        let python = |words: String| python(&words, command);
        match self {
            Refusal::Usage(words) => Refusal::Usage(python(words)),
            Refusal::NotFound(words) => Refusal::NotFound(python(words)),
            Refusal::NotApplicable(words) => Refusal::NotApplicable(python(words)),
            Refusal::Input(words) => Refusal::Input(python(words)),
        }
    }
}

/// Rewrites the options in a message as arguments of Python: `--host-speed` as `host_speed=`, `--dtype bf16` as `dtype='bf16'`,
/// `--rank N` as `rank=N`, `--lone` as `lone=True`. Command lines in backticks stay as they are. `command` is the definition of the command
/// that the message is from, if it is known: there an option may be a flag that takes a value in another.
pub fn python(message: &str, command: Option<&clap::Command>) -> String {
    let arguments = |text: &str| arguments(text, command);
    if !message.matches('`').count().is_multiple_of(2) {
        return arguments(message);
    }
    let parts = message.split('`').enumerate().map(|(at, part)| match at % 2 {
        1 if is_command(part) => help(part).unwrap_or_else(|| format!("`{part}`")),
        1 => format!("`{}`", arguments(part)),
        _ => arguments(part),
    });
    parts.collect()
}

/// Whether the text in backticks is a command line.
fn is_command(quoted: &str) -> bool {
    let first = quoted.split(' ').next().unwrap_or_default();
    ["steptime", "python"].contains(&first) || Cli::command().find_subcommand(first).is_some()
}

/// Returns the help of Python in place of that of a command: `help(steptime.what_if)`.
fn help(quoted: &str) -> Option<String> {
    let command = quoted.strip_prefix("steptime ")?.strip_suffix(" --help")?;
    let function = FUNCTIONS.iter().find(|(named, _)| *named == command).map(|(_, function)| *function);
    Some(format!("`help(steptime.{})`", function.map_or_else(|| command.replace('-', "_"), str::to_owned)))
}

/// Rewrites the options in a text without command lines.
fn arguments(text: &str, command: Option<&clap::Command>) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        let long = prefix(&option[2..], |letter| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
        });
        written.push_str(before);
        let within = before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '-');
        let after = &option[2 + long.len()..];
        rest = match TERMS.get(long) {
            Some(term) if !within => {
                let own = command.and_then(|command| {
                    command.get_arguments().find(|argument| argument.get_long() == Some(long))
                });
                let valued = own.map_or(term.valued, |own| own.get_action().takes_values());
                let (value, taken) = if valued { term.value(after) } else { ("True".to_owned(), 0) };
                written.push_str(&format!("{}={value}", long.replace('-', "_")));
                &after[taken..]
            }
            _ => {
                written.push_str(&option[..2 + long.len()]);
                after
            }
        };
    }
    written + rest
}

impl Term {
    /// Returns the value that follows an option in a message, as Python writes it, and the length of its text there.
    fn value(&self, after: &str) -> (String, usize) {
        let Some(text) = after.strip_prefix([' ', '=']) else { return (String::new(), 0) };
        let value = prefix(text, |letter| !letter.is_whitespace() && !"'\"();".contains(letter));
        let value = value.trim_end_matches(['.', ',', ':']);
        let is_name = |value: &str| {
            value.starts_with(|letter: char| letter.is_ascii_uppercase())
                && !value.contains(|letter: char| letter.is_lowercase())
        };
        let begins = || self.beginnings.iter().any(|beginning| value.starts_with(beginning.as_str()));
        let is_text = self.words.contains(value) || value.contains(['.', '=']) || begins();
        match value {
            "" => (String::new(), 0),
            _ if is_name(value) || value.parse::<f64>().is_ok() => (value.to_owned(), 1 + value.len()),
            _ if is_text => (format!("'{value}'"), 1 + value.len()),
            _ => (String::new(), 0),
        }
    }
}

/// Returns the beginning of a text whose letters are all of a kind.
fn prefix(text: &str, is: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|letter| !is(letter)).unwrap_or(text.len())]
}
