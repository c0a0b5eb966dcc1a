//! Lookups of rows that do not exist.

use std::fmt;

/// Treatment of a lookup of a row that does not exist (negative, or E and beyond).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Bounds {
    /// The call fails with an error that contains table, bag and index.
    #[default]
    Error,
    /// The lookup counts as a row of zeros, in means and maxima too; it is counted and reported.
    WarnAndZero,
    /// The lookup is ignored: neither a mean nor a maximum includes it.
    Ignore,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bounds::Error => "error",
            Bounds::WarnAndZero => "warn-and-zero",
            Bounds::Ignore => "ignore",
        })
    }
}

/// A lookup of a row that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLookup {
    /// Index of the table.
    pub table: usize,
    /// Index of the bag, within the table.
    pub bag: usize,
    /// Position among all indices.
    pub lookup: usize,
    /// The index.
    pub index: i64,
}

/// Report of a call in the bounds modes that do not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Number of lookups of rows that do not exist.
    pub out_of_range: usize,
    /// The first of them.
    pub first: Option<BadLookup>,
}

impl Report {
    /// Adds one lookup.
    pub(super) fn add(&mut self, bad: BadLookup) {
        self.merge(Report { out_of_range: 1, first: Some(bad) });
    }

    /// Adds the report of another part of the call.
    pub(super) fn merge(&mut self, other: Report) {
        self.out_of_range += other.out_of_range;
        self.first = self.first.into_iter().chain(other.first).min_by_key(|bad| bad.lookup);
    }
}
