//! Values that are read by a function of the command line.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};

/// A function that reads a value of the command line.
type Parser<T> = fn(&str) -> Result<T, String>;

/// Reads a text or a number by a function of the command line.
pub fn one<'de, D: Deserializer<'de>, T>(deserializer: D, parser: Parser<T>) -> Result<T, D::Error> {
    Checked(parser).deserialize(deserializer)
}

/// Reads a value that may be left out.
pub fn optional<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parser: Parser<T>,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_option(Optional(parser))
}

/// Reads a list of values.
pub fn list<'de, D: Deserializer<'de>, T>(deserializer: D, parser: Parser<T>) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(List(parser))
}

struct Checked<T>(Parser<T>);

impl<'de, T> DeserializeSeed<'de> for Checked<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        (self.0)(&deserializer.deserialize_any(Text)?).map_err(D::Error::custom)
    }
}

struct Optional<T>(Parser<T>);

impl<'de, T> Visitor<'de> for Optional<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Text.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        one(deserializer, self.0).map(Some)
    }
}

struct List<T>(Parser<T>);

impl<'de, T> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = all.next_element_seed(Checked(self.0))? {
            list.push(value);
        }
        Ok(list)
    }
}

/// A text, or a number as text.
struct Text;

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}
