//! Rows as they were parsed from a source.

use std::fmt;
use std::path::PathBuf;

/// Rows of a part of one input file, column by column.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Position of the file among the inputs.
    pub(super) file: usize,
    /// Bytes of text, or of decoded columns.
    pub(super) bytes: u64,
    /// Lines, damaged ones too.
    pub(super) lines: u64,
    pub(super) label: Vec<f32>,
    /// Transformed values, `[rows, columns]`.
    pub(super) dense: Vec<f32>,
    pub(super) tokens: Vec<Tokens>,
    /// Damaged lines, by their position in this part.
    pub(super) damaged: Vec<(u64, Damage)>,
}

/// Tokens of a categorical column.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) values: Vec<u64>,
    /// Number of tokens of each row, if the hotness varies.
    pub(super) lengths: Option<Vec<u32>>,
}

impl Tokens {
    pub(super) fn fixed(values: Vec<u64>) -> Tokens {
        Tokens { values, lengths: None }
    }
}

/// Reason why a row was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The line has too few or too many fields.
    Fields {
        /// Number of fields.
        found: usize,
        /// Right number of fields.
        expected: usize,
    },
    /// The line is longer than any row can be.
    Long,
    /// The label is missing or not a finite number; in Criteo's text not 0 or 1.
    Label,
    /// A dense value is not a finite number; in Criteo's text not a whole one.
    Dense {
        /// The column.
        column: String,
    },
    /// A category is not a hexadecimal number of up to 8 digits, or not an index.
    Category {
        /// The column.
        column: String,
    },
    /// A row has the wrong number of categories for a fixed hotness.
    Hotness {
        /// The column.
        column: String,
        /// Number of categories.
        found: usize,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Fields { found, expected } => write!(f, "{found} fields instead of {expected}"),
            Damage::Long => write!(f, "the line is too long for a row"),
            Damage::Label => write!(f, "the label is not a valid number"),
            Damage::Dense { column } => write!(f, "column {column} is not a valid number"),
            Damage::Category { column } => write!(f, "column {column} is not a valid category"),
            Damage::Hotness { column, found } => write!(f, "column {column} has {found} categories"),
        }
    }
}

/// Place of a skipped row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRow {
    /// The file.
    pub file: PathBuf,
    /// Line, or row of a Parquet file, from 1.
    pub line: u64,
    /// The reason.
    pub damage: Damage,
}

impl fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.damage)
    }
}
