//! How the indices of lookups are distributed over the rows of a table.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::Counts;

/// How the indices of lookups are distributed over E rows.
///
/// Written as `uniform`, `zipf:A`, `folded-zipf:A`, `counts:..`; in files, and on the command line, everywhere the same.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Indices {
    /// Not known; taken as uniform.
    #[default]
    Unknown,
    /// Every row equally likely.
    Uniform,
    /// `zipf:A`: the row of rank `r`, 1 to E, in proportion to `r^-A`.
    Zipf(f64),
    /// `folded-zipf:A`: ranks in proportion to `r^-A` without end, for which A must be above 1; what lies beyond the table
    /// comes back into it. It is `numpy.random.zipf(A) % E`, and ranks end where 64 bits do, as there.
    FoldedZipf(f64),
    /// Counted: the share of lookups that go to each of equally many rows, from the most to the least wanted.
    Histogram(Arc<[f32]>),
    /// Counted by how often rows occur, in groups: what recordings and sweeps hold.
    Counts(Counts),
}

/// Why a text is no distribution.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum IndicesError {
    /// It names none.
    #[error(
        "{text:?} is no distribution of indices: give uniform, zipf:A (as in zipf:1.05), or folded-zipf:A"
    )]
    Name {
        /// The text.
        text: String,
    },
    /// Groups of rows that cannot be.
    #[error(
        "{text}: counts are rows/lookups of each group, and lookups of the most frequent row in the last, as in counts:90/90,12/30 most:3"
    )]
    Counts {
        /// The text.
        text: String,
    },
    /// What comes after the colon is no number.
    #[error("{text}: a number must come after the colon, as in zipf:1.05")]
    Number {
        /// The text.
        text: String,
    },
    /// An exponent that makes no sense.
    #[error(
        "a Zipf exponent of {exponent} makes no sense: it lies between 0 and 8, mostly near 1, as in zipf:1.05"
    )]
    Exponent {
        /// The exponent.
        exponent: f64,
    },
    /// An exponent for which ranks without end have no distribution.
    #[error("Zipf's law without end needs an exponent above 1, not {exponent}: give one from 1.01 to 8")]
    Endless {
        /// The exponent.
        exponent: f64,
    },
    /// A line that is no index.
    #[error("line {line}: {text:?} is not an index (a whole number from 0)")]
    Index {
        /// The line, from 1.
        line: usize,
        /// What it holds.
        text: String,
    },
    /// An index beyond the table.
    #[error("line {line}: index {index} is no row of a table of {rows}")]
    Row {
        /// The line, from 1.
        line: usize,
        /// The index.
        index: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// There is no index.
    #[error("there is no index in it: write one a line")]
    Empty,
}

/// Greatest exponent that is taken: beyond, all lookups go to one row.
const MOST: f64 = 8.0;

impl Indices {
    /// Zipf's law, the exponent checked.
    ///
    /// # Errors
    ///
    /// An exponent that is no number from 0 to 8.
    pub fn zipf(exponent: f64) -> Result<Indices, IndicesError> {
        let fits = (0.0..=MOST).contains(&exponent);
        if fits { Ok(Indices::Zipf(exponent)) } else { Err(IndicesError::Exponent { exponent }) }
    }

    /// Zipf's law without end, the exponent checked.
    ///
    /// # Errors
    ///
    /// An exponent that is not above 1 and at most 8.
    pub fn folded_zipf(exponent: f64) -> Result<Indices, IndicesError> {
        let fits = exponent > 1.0 && exponent <= MOST;
        if fits { Ok(Indices::FoldedZipf(exponent)) } else { Err(IndicesError::Endless { exponent }) }
    }

    /// Counted from a text with one index below `rows` a line; empty lines count as none.
    ///
    /// # Errors
    ///
    /// A line that is no such index, or no index at all.
    pub fn counted(text: &str, rows: u64) -> Result<Indices, IndicesError> {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let lines = text.lines().map(str::trim).zip(1..);
        for (text, line) in lines.filter(|(text, _)| !text.is_empty()) {
            let index: u64 = text.parse().map_err(|_| IndicesError::Index { line, text: text.to_owned() })?;
            if index >= rows {
                return Err(IndicesError::Row { line, index, rows });
            }
            *counts.entry(index).or_default() += 1;
        }
        let total: u64 = counts.values().sum();
        if total == 0 {
            return Err(IndicesError::Empty);
        }
        let mut shares: Vec<f32> =
            counts.into_values().map(|count| (count as f64 / total as f64) as f32).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        Ok(Indices::Histogram(Arc::from(shares)))
    }
}

impl FromStr for Indices {
    type Err = IndicesError;

    /// Reads `uniform`, `zipf:A` or `folded-zipf:A`.
    fn from_str(text: &str) -> Result<Indices, IndicesError> {
        let (name, exponent) = text.split_once(':').unwrap_or((text, ""));
        let number = || exponent.parse().map_err(|_| IndicesError::Number { text: text.to_owned() });
        match name {
            "uniform" if text == "uniform" => Ok(Indices::Uniform),
            "zipf" => Indices::zipf(number()?),
            "folded-zipf" => Indices::folded_zipf(number()?),
            "counts" => {
                let wrong = |()| IndicesError::Counts { text: text.to_owned() };
                Ok(Indices::Counts(text.parse().map_err(wrong)?))
            }
            _ => Err(IndicesError::Name { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Indices::Unknown => f.write_str("unknown"),
            Indices::Uniform => f.write_str("uniform"),
            Indices::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Indices::FoldedZipf(exponent) => write!(f, "folded-zipf:{exponent}"),
            Indices::Histogram(shares) => write!(f, "counts of {} rows", shares.len()),
            Indices::Counts(counts) => write!(f, "{counts}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_distribution_is_refused() {
        let error = |text: &str| text.parse::<Indices>().unwrap_err().to_string();
        assert!(error("uniform:1").contains("give uniform"));
        assert!(error("zip:1").contains("zipf:1.05"));
        assert!(error("zipf").contains("after the colon"));
        assert!(error("zipf:x").contains("after the colon"));
        for exponent in ["-1", "8.1", "NaN", "inf"] {
            assert!(error(&format!("zipf:{exponent}")).contains("between 0 and 8"), "{exponent}");
            assert!(error(&format!("folded-zipf:{exponent}")).contains("above 1"), "{exponent}");
        }
        assert!(error("folded-zipf:1").contains("above 1, not 1"));
    }

    #[test]
    fn lines_are_counted_from_the_most_wanted_row_on() {
        let counted = Indices::counted("7\n3\n 7\n\n7\n", 8).unwrap();
        assert_eq!(counted, Indices::Histogram([0.75, 0.25].into()));
        assert_eq!(counted.to_string(), "counts of 2 rows");
        let error = |text, rows| Indices::counted(text, rows).unwrap_err().to_string();
        assert!(error("7\n\nx", 8).contains("line 3: \"x\""));
        assert!(error("7\n8", 8).contains("line 2: index 8 is no row of a table of 8"));
        assert!(error("\n", 8).contains("no index"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(exponent in 1.001_f64..8.0) {
            for one in [Indices::Uniform, Indices::Zipf(exponent), Indices::FoldedZipf(exponent)] {
                prop_assert_eq!(one.to_string().parse::<Indices>(), Ok(one));
            }
        }
    }
}
