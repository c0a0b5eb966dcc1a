//! Paths of sizes: `tables[3].rows`, `tables[*].lookups`, `layers[0].width`.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Kind of a part with sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Table,
    Layer,
}

/// A size of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Rows,
    Columns,
    Lookups,
    Width,
}

/// A size of one table or layer, or of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizePath {
    pub(super) part: Part,
    /// Position in the order of first use; `None` for all.
    pub(super) at: Option<usize>,
    pub(super) size: Size,
}

impl SizePath {
    /// Name of the size.
    #[must_use]
    pub fn size(&self) -> &'static str {
        match self.size {
            Size::Rows => "rows",
            Size::Columns => "columns",
            Size::Lookups => "lookups",
            Size::Width => "width",
        }
    }
}

impl fmt::Display for SizePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = if self.part == Part::Table { "tables" } else { "layers" };
        match self.at {
            Some(at) => write!(f, "{part}[{at}].{}", self.size()),
            None => write!(f, "{part}[*].{}", self.size()),
        }
    }
}

impl FromStr for SizePath {
    type Err = Error;

    fn from_str(text: &str) -> Result<SizePath, Error> {
        let unknown = || Error::UnknownSize { path: text.to_owned() };
        let (part, rest) = text.split_once('[').ok_or_else(unknown)?;
        let (at, size) = rest.split_once("].").ok_or_else(unknown)?;
        let (part, size) = match (part, size) {
            ("tables", "rows") => (Part::Table, Size::Rows),
            ("tables", "columns") => (Part::Table, Size::Columns),
            ("tables", "lookups") => (Part::Table, Size::Lookups),
            ("layers", "width") => (Part::Layer, Size::Width),
            _ => return Err(unknown()),
        };
        let at = if at == "*" { None } else { Some(at.parse().map_err(|_| unknown())?) };
        Ok(SizePath { part, at, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_it_is_read() {
        for text in ["tables[3].rows", "tables[*].lookups", "layers[0].width", "tables[12].columns"] {
            assert_eq!(text.parse::<SizePath>().unwrap().to_string(), text);
        }
        for text in
            ["tables", "tables[].rows", "tables[1]rows", "layers[0].rows", "tables[-1].rows", "x[0].width"]
        {
            let error = text.parse::<SizePath>().unwrap_err().to_string();
            assert!(error.contains("tables[0].rows"), "{error}");
        }
    }
}
