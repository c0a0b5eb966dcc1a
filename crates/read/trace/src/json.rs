//! A forgiving pull reader for JSON: what profilers write, and what is left when they are cut off.
//!
//! [`Cursor`] walks a byte slice and never builds a tree. It takes missing and surplus commas, raw
//! control characters in strings, `NaN` and `Infinity`; each is noted where it stands.

mod cursor;
mod field;
mod scan;
mod skip;
mod text;

pub(crate) use cursor::{Cursor, Fault, Value};
pub(crate) use text::Text;
