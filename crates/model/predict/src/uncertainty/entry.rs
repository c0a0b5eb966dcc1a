//! One entry of the table: a value with its meaning, source and date.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// An entry as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<T> {
    value: T,
    meaning: String,
    source: String,
    date: String,
}

/// A value with its source, for reports that show both.
#[derive(Debug)]
pub struct SourcedValue {
    /// The value.
    pub value: f64,
    /// Its source.
    pub source: String,
}

/// Reads an entry, and rejects one without a meaning, a source or a date.
fn entry<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Entry<T>, D::Error> {
    let entry = Entry::deserialize(from)?;
    for (name, text) in [("meaning", &entry.meaning), ("source", &entry.source), ("date", &entry.date)] {
        if text.trim().is_empty() {
            return Err(D::Error::custom(format!("`{name}` is empty: write it beside the value")));
        }
    }
    Ok(entry)
}

/// Reads the value of an entry.
pub(super) fn value<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    entry(from).map(|entry| entry.value)
}

/// Reads the value of an entry and its source.
pub(super) fn sourced<'de, D: Deserializer<'de>>(from: D) -> Result<SourcedValue, D::Error> {
    entry(from).map(|Entry { value, source, .. }| SourcedValue { value, source })
}

/// Declares tables of entries. Meanings are in the file.
macro_rules! tables {
    ($($(#[$doc:meta])* $vis:vis $table:ident { $($(#[$of:meta])* $own:vis $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $vis struct $table {
            $(
                $(#[$of])*
                #[serde(deserialize_with = "crate::uncertainty::entry::value")]
                $own $field: $kind,
            )*
        }
    )*};
}
pub(super) use tables;
