//! Position of the reader in a JSON text.

use super::Text;
use super::scan::{blank_stop, string_stop};
use crate::repairs::Note;

/// Maximum length of a string; longer ones are not names, and are dropped.
const LONGEST: usize = 16 << 20;

/// Reason why reading cannot continue from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The buffered bytes end inside a value.
    End,
    /// A byte that even tolerant reading does not allow here.
    Unexpected,
}

/// Beginning of a value: containers are entered, scalars are read completely.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// After `{`: members follow, see [`Cursor::key`].
    Object,
    /// After `[`: items follow, see [`Cursor::item`].
    Array,
    Text(Text<'a>),
    /// Digits of a number, not yet checked.
    Number(&'a [u8]),
    /// `NaN`, `Infinity` and similar words, as written.
    NotANumber(&'a [u8]),
    Bool(bool),
    Null,
}

/// Bytes that occur in numbers and bare words.
const IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] =
            matches!(byte as u8, b'0'..=b'9' | b'+' | b'-' | b'.' | b'_' | b'a'..=b'z' | b'A'..=b'Z');
        byte += 1;
    }
    table
};

/// Reader of JSON text. After a [`Fault`] the position is invalid; set [`Cursor::at`] again.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
    /// Position of the next byte to read.
    pub(crate) at: usize,
    /// Whether nothing follows `bytes`; otherwise a word that touches their end is not read yet.
    pub(crate) ended: bool,
    /// Whether a value was read, so that a comma must precede the next.
    pub(crate) after_value: bool,
    /// Tolerated defects, with their positions.
    pub(crate) quirks: Vec<(Note, usize)>,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of a complete text.
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, ended: true, after_value: false, quirks: Vec::new() }
    }

    /// Returns the next byte that is not white space, without consuming it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8, Fault> {
        self.at = blank_stop(self.bytes, self.at);
        self.bytes.get(self.at).copied().ok_or(Fault::End)
    }

    /// Moves to the next member of an object and reads its key and colon; `None` at the end.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Option<Text<'a>>, Fault> {
        if !self.next_in(b'}')? {
            return Ok(None);
        }
        if self.bytes[self.at] != b'"' {
            return Err(Fault::Unexpected);
        }
        self.at += 1;
        let key = self.text()?;
        if self.peek()? != b':' {
            return Err(Fault::Unexpected);
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Moves to the next item of an array; `false` at the end.
    #[inline]
    pub(crate) fn item(&mut self) -> Result<bool, Fault> {
        self.next_in(b']')
    }

    /// Skips commas; returns `false` if `close` was found and consumed.
    #[inline]
    fn next_in(&mut self, close: u8) -> Result<bool, Fault> {
        let mut commas = 0;
        let mut next = self.peek()?;
        while next == b',' {
            commas += 1;
            self.at += 1;
            next = self.peek()?;
        }
        let due = usize::from(self.after_value && next != close);
        if commas != due {
            let note = if commas < due { Note::MissingComma } else { Note::SurplusComma };
            self.quirks.push((note, self.at));
        }
        if next == close {
            self.at += 1;
            self.after_value = true;
            return Ok(false);
        }
        Ok(true)
    }

    /// Reads a scalar, or enters a container.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Fault> {
        let first = self.peek()?;
        self.value_from(first)
    }

    /// Reads a value like [`Cursor::value`], at its first byte `first`.
    #[inline]
    pub(super) fn value_from(&mut self, first: u8) -> Result<Value<'a>, Fault> {
        match first {
            b'"' => {
                let start = self.at;
                self.at += 1;
                self.after_value = true;
                let text = self.text()?;
                if text.raw.len() > LONGEST {
                    self.quirks.push((Note::LongString, start));
                    return Ok(Value::Null);
                }
                Ok(Value::Text(text))
            }
            b'{' => {
                self.at += 1;
                self.after_value = false;
                Ok(Value::Object)
            }
            b'[' => {
                self.at += 1;
                self.after_value = false;
                Ok(Value::Array)
            }
            _ => self.word(),
        }
    }

    /// Reads the rest of a string after its opening quote.
    #[inline]
    pub(super) fn text(&mut self) -> Result<Text<'a>, Fault> {
        let start = self.at;
        let mut escaped = false;
        let mut stop = start;
        loop {
            stop = string_stop(self.bytes, stop);
            match self.bytes.get(stop) {
                Some(b'"') => break,
                Some(b'\\') if stop + 1 < self.bytes.len() => {
                    escaped = true;
                    stop += 2;
                }
                Some(b'\\') | None => return Err(Fault::End),
                Some(_) => {
                    self.quirks.push((Note::ControlCharacter, stop));
                    stop += 1;
                }
            }
        }
        self.at = stop + 1;
        Ok(Text { raw: &self.bytes[start..stop], escaped })
    }

    /// Reads a number or a bare word.
    #[inline]
    fn word(&mut self) -> Result<Value<'a>, Fault> {
        let start = self.at;
        let mut stop = start;
        while self.bytes.get(stop).is_some_and(|&byte| IN_WORD[byte as usize]) {
            stop += 1;
        }
        if stop == self.bytes.len() && !self.ended {
            return Err(Fault::End);
        }
        self.at = stop;
        self.after_value = true;
        let word = &self.bytes[start..stop];
        Ok(match word {
            [b'0'..=b'9', ..] | [b'-' | b'+' | b'.', b'0'..=b'9', ..] => Value::Number(word),
            b"true" => Value::Bool(true),
            b"false" => Value::Bool(false),
            b"null" => Value::Null,
            b"NaN" | b"nan" | b"-nan" | b"Infinity" | b"-Infinity" | b"inf" | b"-inf" | b"-NaN" => {
                self.quirks.push((Note::NotANumber, start));
                Value::NotANumber(word)
            }
            _ => return Err(Fault::Unexpected),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads any value to its end and returns a description of it.
    fn shape(cursor: &mut Cursor<'_>) -> Result<String, Fault> {
        Ok(match cursor.value()? {
            Value::Object => {
                let mut members = Vec::new();
                while let Some(key) = cursor.key()? {
                    members.push(format!("{}={}", key.decoded(), shape(cursor)?));
                }
                format!("{{{}}}", members.join(" "))
            }
            Value::Array => {
                let mut items = Vec::new();
                while cursor.item()? {
                    items.push(shape(cursor)?);
                }
                format!("[{}]", items.join(" "))
            }
            Value::Text(text) => text.decoded(),
            Value::Number(digits) | Value::NotANumber(digits) => String::from_utf8_lossy(digits).into(),
            Value::Bool(yes) => yes.to_string(),
            Value::Null => "null".into(),
        })
    }

    fn check(json: &str, expect: Result<&str, Fault>, quirks: &[Note]) {
        let mut cursor = Cursor::new(json.as_bytes());
        assert_eq!(shape(&mut cursor), expect.map(String::from), "{json}");
        let seen: Vec<Note> = cursor.quirks.iter().map(|quirk| quirk.0).collect();
        assert_eq!(seen, quirks, "{json}");
    }

    #[test]
    fn plain_json() {
        check(
            r#" {"a": [1, -2.5e3, true], "b\n": {}, "c": null} "#,
            Ok("{a=[1 -2.5e3 true] b\n={} c=null}"),
            &[],
        );
        check("[]", Ok("[]"), &[]);
    }

    #[test]
    fn forgiven() {
        check(r#"{"a":1 "b":2}"#, Ok("{a=1 b=2}"), &[Note::MissingComma]);
        check("[1,,2,]", Ok("[1 2]"), &[Note::SurplusComma, Note::SurplusComma]);
        check("[,]", Ok("[]"), &[Note::SurplusComma]);
        check("[NaN,-Infinity]", Ok("[NaN -Infinity]"), &[Note::NotANumber, Note::NotANumber]);
        check("\"a\nb\"", Ok("a\nb"), &[Note::ControlCharacter]);
    }

    #[test]
    fn not_forgiven() {
        check("{", Err(Fault::End), &[]);
        check("\"abc", Err(Fault::End), &[]);
        check("\"abc\\", Err(Fault::End), &[]);
        check("{1:2}", Err(Fault::Unexpected), &[]);
        check("{\"a\" 1}", Err(Fault::Unexpected), &[]);
        check("<html>", Err(Fault::Unexpected), &[]);
        check("[1}", Err(Fault::Unexpected), &[Note::MissingComma]);
    }

    #[test]
    fn a_word_at_the_end_waits_for_more() {
        let mut cursor = Cursor::new(b"12");
        cursor.ended = false;
        assert!(matches!(cursor.value(), Err(Fault::End)));
    }
}
