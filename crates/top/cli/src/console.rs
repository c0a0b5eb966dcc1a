//! Input and output of a command: a terminal, or a calling program in the same process.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use steptime_predict::{Choice, Step};

use crate::cli::Form;
use crate::input_cache::CachedInput;
use crate::output;
use crate::report::csv::Table;

/// Input and output of a command.
#[derive(Debug, Default)]
pub struct Console<'a> {
    /// Text printed so far, for a calling program.
    kept: Option<RefCell<String>>,
    /// Text read instead of standard input.
    given: Option<&'a str>,
    /// Inputs that are open already.
    opened: &'a [&'a CachedInput],
}

impl<'a> Console<'a> {
    /// Returns the console of the terminal, or of the files it is redirected to.
    pub fn terminal() -> Console<'a> {
        Console::default()
    }

    /// Returns the console of a calling program: nothing is printed, `given` is read instead of standard input, and inputs
    /// that are `opened` are not opened again.
    pub fn program(given: &'a str, opened: &'a [&'a CachedInput]) -> Console<'a> {
        Console { kept: Some(RefCell::default()), given: Some(given), opened }
    }

    /// Returns the text printed for a calling program.
    pub fn into_text(self) -> String {
        self.kept.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Returns the text to read instead of standard input.
    pub fn given(&self) -> Option<&'a str> {
        self.given
    }

    /// Returns the step of an input that is open already.
    pub fn known(&self, path: &Path, choice: &Choice) -> Option<Arc<Step>> {
        self.opened.iter().find(|opened| opened.is(path, choice))?.step()
    }

    /// Keeps an opened step for the next queries of a calling program.
    pub fn keep(&self, path: &Path, choice: &Choice, step: Step) -> Arc<Step> {
        match self.opened.iter().find(|opened| opened.is(path, choice)) {
            Some(opened) => opened.keep(step),
            None => Arc::new(step),
        }
    }

    /// Prints a report.
    pub fn print(&self, text: &str) -> io::Result<()> {
        self.print_while_open(text).map(|_| ())
    }

    /// Prints one of many answers; returns `false` if the reader has closed the output.
    pub fn print_while_open(&self, text: &str) -> io::Result<bool> {
        self.write(&output::sanitized_lines(text))
    }

    /// Prints a value as JSON.
    pub fn print_json<T: Serialize>(&self, value: &T) -> io::Result<()> {
        // A program does not need line breaks.
        let text = match self.kept {
            None => serde_json::to_string_pretty(value),
            Some(_) => serde_json::to_string(value),
        };
        self.write(&(output::sanitized_json(&text.map_err(io::Error::from)?) + "\n")).map(|_| ())
    }

    /// Prints a value as one line of JSON; returns `false` if the reader has closed the output.
    pub fn print_json_line<T: Serialize>(&self, value: &T) -> io::Result<bool> {
        let text = serde_json::to_string(value).map_err(io::Error::from)?;
        self.write(&(output::sanitized_json(&text) + "\n"))
    }

    /// Prints an answer in the requested format: text, JSON or CSV.
    pub fn print_answer<T: Serialize>(
        &self,
        form: Form,
        answer: &T,
        text: impl FnOnce(&T) -> String,
        table: impl FnOnce(&T) -> Table,
    ) -> io::Result<()> {
        match form {
            Form { json: true, .. } => self.print_json(answer),
            Form { csv: true, .. } => self.print(&table(answer).text()),
            _ => self.print(&text(answer)),
        }
    }

    fn write(&self, text: &str) -> io::Result<bool> {
        match &self.kept {
            None => output::write_out(text),
            Some(kept) => {
                kept.borrow_mut().push_str(text);
                Ok(true)
            }
        }
    }
}
