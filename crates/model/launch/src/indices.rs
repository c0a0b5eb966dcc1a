//! Distributions of lookup indices over the rows of a table.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::Counts;

/// Distribution of lookup indices over E rows.
///
/// Written as `uniform`, `zipf:A`, `folded-zipf:A`, `counts:..`; the same in files and on the command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Indices {
    /// Unknown; treated as uniform.
    #[default]
    Unknown,
    /// Every row equally likely.
    Uniform,
    /// `zipf:A`: the row of rank `r`, 1 to E, in proportion to `r^-A`.
    Zipf(f64),
    /// `folded-zipf:A`: ranks in proportion to `r^-A` without end, which needs A above 1; ranks beyond the table
    /// wrap around. It is `numpy.random.zipf(A) % E`, and ranks end at 64 bits, as there.
    FoldedZipf(f64),
    /// Counted: share of the lookups of each of equally many rows, from the most to the least popular.
    Histogram(Arc<[f32]>),
    /// Counts grouped by access count, as in recordings and sweeps.
    Counts(Counts),
}

/// Error of a text that is not a distribution.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum IndicesError {
    /// Unknown name.
    #[error(
        "{text:?} is not a distribution of indices: give uniform, zipf:A (as in zipf:1.05), or folded-zipf:A"
    )]
    Name { text: String },
    /// Impossible groups of rows.
    #[error(
        "{text}: counts are rows/lookups of each group, and lookups of the most frequent row in the last, as in counts:90/90,12/30 most:3"
    )]
    Counts { text: String },
    /// No number after the colon.
    #[error("{text}: a number must come after the colon, as in zipf:1.05")]
    Number { text: String },
    /// Zipf exponent outside 0 to 8.
    #[error(
        "a Zipf exponent of {exponent} is out of range: it must be between 0 and 8 and is mostly near 1, as in zipf:1.05"
    )]
    Exponent { exponent: f64 },
    /// Exponent for which ranks without end have no distribution.
    #[error("folded-zipf needs an exponent above 1, not {exponent}: give one from 1.01 to 8")]
    Endless { exponent: f64 },
    /// Line that is not an index.
    #[error("line {line}: {text:?} is not an index (a whole number from 0)")]
    Index {
        /// Line, from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// Index beyond the table.
    #[error("line {line}: index {index} is not a row of a table of {rows} rows")]
    Row {
        /// Line, from 1.
        line: usize,
        index: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// Text without an index.
    #[error("there is no index in it: write one a line")]
    Empty,
}

/// Greatest exponent that is accepted: beyond it, all lookups go to one row.
const MOST: f64 = 8.0;

impl Indices {
    /// Zipf's law, the exponent checked.
    ///
    /// # Errors
    ///
    /// An exponent that is not a number from 0 to 8.
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

    /// Distribution counted from a text with one index below `rows` per line; empty lines are skipped.
    ///
    /// # Errors
    ///
    /// A line that is not such an index, or no index at all.
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
        assert!(error("7\n8", 8).contains("line 2: index 8 is not a row of a table of 8 rows"));
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
