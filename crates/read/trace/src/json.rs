//! Tolerant pull reader for JSON as written by profilers, including truncated files.
//!
//! [`Cursor`] walks a byte slice and never builds a tree. It accepts missing and surplus commas, raw
//! control characters in strings, `NaN` and `Infinity`; each is recorded with its position.

mod cursor;
mod field;
mod scan;
mod skip;
mod text;

pub(crate) use cursor::{Cursor, Fault, Value};
pub(crate) use text::Text;
