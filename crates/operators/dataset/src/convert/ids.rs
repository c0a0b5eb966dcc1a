//! Indices of categories.

use steptime_launch::mix;

use super::table::{MISSING, Table};

/// Rule from tokens to indices.
#[derive(Debug)]
pub(super) enum Ids {
    /// Ids of each column's frequent categories, and their number; 0 for others.
    Tables(Vec<(Table, u32)>),
    /// Hashes below a number of buckets; 0 for missing values.
    Hash(u32),
    /// Tokens are indices; the greatest of each column. 0 for missing values.
    Stored(Vec<u64>),
}

impl Ids {
    /// Number of indices of a column.
    pub(super) fn cardinality(&self, column: usize) -> u32 {
        match self {
            Ids::Tables(tables) => tables[column].1 + 1,
            Ids::Hash(buckets) => *buckets,
            Ids::Stored(greatest) => greatest[column] as u32 + 1,
        }
    }

    /// Appends the indices of tokens.
    pub(super) fn indices(&self, column: usize, tokens: &[u64], indices: &mut Vec<i32>) {
        let known = |token: u64, index: u32| if token == MISSING { 0 } else { index.cast_signed() };
        match self {
            Ids::Tables(tables) => {
                let table = &tables[column].0;
                indices.extend(tokens.iter().map(|&token| known(token, table.get(token))));
            }
            Ids::Hash(buckets) => {
                let others = u64::from(buckets - 1);
                let bucket = |token: u64| 1 + (mix(token) % others) as u32;
                indices.extend(tokens.iter().map(|&token| known(token, bucket(token))));
            }
            Ids::Stored(_) => indices.extend(tokens.iter().map(|&token| known(token, token as u32))),
        }
    }
}
