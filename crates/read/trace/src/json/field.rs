//! Fields of a known type: a value of another type is recorded and skipped.

use super::{Cursor, Fault, Text, Value};
use crate::number;
use crate::repairs::Note;

impl<'a> Cursor<'a> {
    /// Reads a scalar; containers are recorded, skipped, and read as null.
    #[inline]
    pub(crate) fn scalar(&mut self) -> Result<Value<'a>, Fault> {
        let first = self.peek()?;
        self.scalar_from(first)
    }

    /// Reads a scalar like [`Cursor::scalar`], at its first byte `first`.
    #[inline]
    fn scalar_from(&mut self, first: u8) -> Result<Value<'a>, Fault> {
        if let b'{' | b'[' = first {
            self.wrong_type();
            self.skip()?;
            return Ok(Value::Null);
        }
        self.value_from(first)
    }

    /// Reads a number, bare or quoted, with `parse`; null gives `None`.
    #[inline]
    pub(crate) fn number<T>(&mut self, parse: impl Fn(&[u8]) -> Option<T>) -> Result<Option<T>, Fault> {
        let first = self.peek()?;
        let start = self.at;
        let digits = match self.scalar_from(first)? {
            Value::Number(digits) => digits,
            Value::Text(text) => text.raw.trim_ascii(),
            Value::Null | Value::NotANumber(_) => return Ok(None),
            _ => b"",
        };
        let parsed = parse(digits);
        if parsed.is_none() {
            self.quirks.push((Note::WrongType, start));
        }
        Ok(parsed)
    }

    /// Reads a whole number.
    #[inline]
    pub(crate) fn integer(&mut self) -> Result<Option<i64>, Fault> {
        self.number(number::integer)
    }

    /// Reads a whole number from zero to 2^64.
    #[inline]
    pub(crate) fn unsigned(&mut self) -> Result<Option<u64>, Fault> {
        self.number(number::unsigned)
    }

    pub(crate) fn float(&mut self) -> Result<Option<f64>, Fault> {
        self.number(number::float)
    }

    /// Reads a string; null gives `None`.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Option<Text<'a>>, Fault> {
        let first = self.peek()?;
        let start = self.at;
        match self.scalar_from(first)? {
            Value::Text(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => {
                self.quirks.push((Note::WrongType, start));
                Ok(None)
            }
        }
    }

    /// Enters an object and returns `true`, or skips anything else and returns `false`.
    pub(crate) fn enter_object(&mut self) -> Result<bool, Fault> {
        self.enter(b'{')
    }

    /// Enters an array and returns `true`, or skips anything else and returns `false`.
    pub(crate) fn enter_array(&mut self) -> Result<bool, Fault> {
        self.enter(b'[')
    }

    fn enter(&mut self, open: u8) -> Result<bool, Fault> {
        if self.peek()? != open {
            self.skip()?;
            return Ok(false);
        }
        self.at += 1;
        self.after_value = false;
        Ok(true)
    }

    /// Records a value of the wrong type at the cursor.
    pub(crate) fn wrong_type(&mut self) {
        self.quirks.push((Note::WrongType, self.at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_another_type_are_noted() {
        let check = |json: &str, expect: Option<i64>, noted: usize| {
            let mut cursor = Cursor::new(json.as_bytes());
            assert_eq!(cursor.integer(), Ok(expect), "{json}");
            assert_eq!(cursor.quirks.len(), noted, "{json}");
        };
        check("12", Some(12), 0);
        check("\" 12 \"", Some(12), 0);
        check("null", None, 0);
        check("[1, {}]", None, 1);
        check("true", None, 1);
        check("12abc", None, 1);
        check("NaN", None, 1);
    }
}
