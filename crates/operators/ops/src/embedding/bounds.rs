//! Lookups of rows that are not there.

use std::fmt;

/// What a lookup of a row that is not there (negative, or E and beyond) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Bounds {
    /// The call fails and names table, bag and index.
    #[default]
    Error,
    /// It stands for a row of zeros, which a mean counts and a maximum sees; it is counted and reported.
    WarnAndZero,
    /// It is as if it were not there: a mean does not count it, a maximum does not see it.
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

/// A lookup of a row that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLookup {
    /// Place of the table.
    pub table: usize,
    /// The bag, within the table.
    pub bag: usize,
    /// Place among all indices.
    pub lookup: usize,
    /// The index.
    pub index: i64,
}

/// What a call met in the bounds modes that do not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Lookups of rows that are not there.
    pub out_of_range: usize,
    /// The first of them.
    pub first: Option<BadLookup>,
}

impl Report {
    /// Counts one more.
    pub(super) fn add(&mut self, bad: BadLookup) {
        self.merge(Report { out_of_range: 1, first: Some(bad) });
    }

    /// Counts those of another part of the call.
    pub(super) fn merge(&mut self, other: Report) {
        self.out_of_range += other.out_of_range;
        self.first = self.first.into_iter().chain(other.first).min_by_key(|bad| bad.lookup);
    }
}
