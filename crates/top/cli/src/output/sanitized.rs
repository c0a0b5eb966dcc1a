//! Filters for text from files, which must not control the terminal: escape sequences, lines that look like the program's
//! own, and right-to-left text.

/// Replacement of a character that is not printed.
const INSTEAD: char = '\u{fffd}';

/// Whether a terminal interprets a character instead of showing it.
fn is_control(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

fn filtered(text: &str, keep: &[char]) -> String {
    text.chars().map(|c| if is_control(c) && !keep.contains(&c) { INSTEAD } else { c }).collect()
}

/// Filters a text of several lines.
pub fn lines(text: &str) -> String {
    filtered(text, &['\n', '\t'])
}

/// Filters a name, which has one line.
pub fn name(text: &str) -> String {
    filtered(text, &[])
}

/// Filters a message for stderr: lines after the first are indented, so that none looks like the program's own.
pub fn message(text: &str) -> String {
    lines(text).replace('\n', "\n  ")
}

/// Escapes such characters in JSON without a change of meaning: they occur only in strings, and those below U+0020 are escaped already.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) && c != '\n' {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: &str = "\u{1b}]0;x\u{7}a\u{9b}31m\r\nb\u{202e}\u{7f}";

    #[test]
    fn nothing_that_steers_is_left() {
        assert_eq!(name(BAD), "�]0;x�a�31m��b��");
        assert_eq!(lines("a\tb\nc\r\n"), "a\tb\nc�\n");
        assert_eq!(message("a\nerror: b"), "a\n  error: b");
        assert_eq!(lines("Größe · ± 5 µs"), "Größe · ± 5 µs");
    }

    #[test]
    fn strings_in_json_stay_what_they_are() {
        let text = json(&serde_json::to_string(BAD).expect("JSON"));
        assert!(!text.chars().any(steers), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), BAD);
    }
}
