//! Widths of reports and of text.

use std::sync::OnceLock;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Minimum width of a report, also without a terminal.
const LEAST: usize = 80;
/// Maximum width of lines of sentences, for easy reading.
const PROSE: usize = 100;

/// Returns the maximum width of a line: `COLUMNS`, else that of the terminal; 80 in a pipe, and never less.
pub fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let terminal = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into());
        said.or_else(terminal).unwrap_or(LEAST).max(LEAST)
    })
}

/// Returns the maximum width of a line of sentences.
pub fn prose() -> usize {
    width().min(PROSE)
}

/// Returns the width of a text on a terminal, in columns.
pub fn text_width(text: &str) -> usize {
    text.width()
}

/// Shortens a text to at most `columns`: an ellipsis replaces the middle of a longer one.
pub fn shorten(text: &str, columns: usize) -> String {
    let text = crate::output::name(text);
    if text_width(&text) <= columns {
        return text;
    }
    let room = columns.saturating_sub(1);
    let (head, tail) = (room - room / 2, room / 2);
    let front = taken(text.chars(), head);
    let back: String = taken(text.chars().rev(), tail).chars().rev().collect();
    format!("{front}…{back}")
}

/// Returns as many characters as fit into `columns`.
fn taken(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or(0);
        used <= columns
    };
    characters.take_while(fits).collect()
}

/// Wraps a text to lines of at most `columns`, the later ones indented. A word longer than a line loses its middle.
pub fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let word = shorten(word, columns.saturating_sub(indent));
        let is_new = line.trim_start().is_empty();
        if !is_new && text_width(&line) + 1 + text_width(&word) > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if !is_new {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines.join("\n")
}

/// Joins phrases with three blanks, on as many lines as they need; the later ones are indented.
pub fn apart(phrases: &[String], columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for phrase in phrases.iter().filter(|phrase| !phrase.is_empty()) {
        match lines.last_mut() {
            Some(line) if text_width(line) + 3 + text_width(phrase) <= columns => {
                line.push_str("   ");
                line.push_str(phrase);
            }
            Some(_) => lines.push(format!("  {}", shorten(phrase, columns - 2))),
            None => lines.push(shorten(phrase, columns)),
        }
    }
    lines.join("\n")
}

/// Wraps every line of a text that is too long between words; continuation lines have the line's indent and two more.
pub fn reflowed(text: &str, columns: usize) -> String {
    let line = |line: &str| {
        if text_width(line) <= columns {
            return line.to_owned();
        }
        let indent = line.len() - line.trim_start().len();
        " ".repeat(indent)
            + &wrapped(line, columns - indent, 2).replace('\n', &format!("\n{}", " ".repeat(indent)))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shorten("aten::mm", 8), "aten::mm");
        assert_eq!(shorten("aten::addmm", 8), "aten…dmm");
        assert_eq!(shorten("äöü", 2), "ä…");
        assert_eq!(
            text_width(&shorten("名前の長いカーネル", 8)),
            8 - 1,
            "a wide character takes two columns or none"
        );
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("a bb ccc", 4, 1), "a bb\n ccc");
        assert_eq!(wrapped("", 4, 2), "");
        assert_eq!(wrapped("a toolong", 6, 2), "a to…g");
        assert_eq!(wrapped("aa toolong", 6, 2), "aa\n  to…g");
        assert_eq!(reflowed("  a bb ccc\nd", 8), "  a bb\n    ccc\nd");
    }

    #[test]
    fn phrases_stay_whole() {
        let phrases = ["step 1 ms", "90 % in 2", "", "fast"].map(str::to_owned);
        assert_eq!(apart(&phrases, 30), "step 1 ms   90 % in 2   fast");
        assert_eq!(apart(&phrases, 22), "step 1 ms   90 % in 2\n  fast");
    }
}
