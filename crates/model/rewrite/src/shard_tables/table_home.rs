//! Placement of a table.

use std::cmp::Reverse;

use super::PlacedTable;
use crate::error::Error;

/// Placement of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableHome {
    /// Every rank has the whole table.
    Everywhere,
    /// Number of columns per rank. A whole table is on one rank.
    Columns(Vec<(u32, i64)>),
    /// Number of rows per rank, cut over all ranks.
    Rows(Vec<i64>),
}

/// A rank's part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RankPart {
    Whole,
    /// Number of columns.
    Columns(i64),
    /// Number of rows.
    Rows(i64),
}

impl TableHome {
    /// A rank's part; `None` where it has none, or every rank has the whole table.
    pub(super) fn on(&self, rank: u32) -> Option<RankPart> {
        match self {
            TableHome::Everywhere => None,
            TableHome::Columns(parts) => {
                let (_, columns) = parts.iter().find(|(on, _)| *on == rank)?;
                Some(if parts.len() == 1 { RankPart::Whole } else { RankPart::Columns(*columns) })
            }
            TableHome::Rows(rows) => rows.get(rank as usize).copied().map(RankPart::Rows),
        }
    }

    /// Lookups of a bag in a rank's rows: in proportion to the number of rows, as popular rows are scattered. The remainder of the division goes to
    /// the largest fractions, of equal ones to the first ranks.
    pub(super) fn lookups(&self, rank: u32, each: i64) -> i64 {
        let TableHome::Rows(rows) = self else { return each };
        let all = rows.iter().map(|&rows| i128::from(rows)).sum::<i128>().max(1);
        let quota = |rows: &i64| i128::from(*rows) * i128::from(each);
        let mut remainders: Vec<(i128, Reverse<usize>)> =
            rows.iter().enumerate().map(|(at, rows)| (quota(rows) % all, Reverse(at))).collect();
        remainders.sort_unstable_by(|a, b| b.cmp(a));
        let given: i128 = rows.iter().map(|rows| quota(rows) / all).sum();
        let left = usize::try_from(i128::from(each) - given).unwrap_or(0);
        let more = remainders.iter().take(left).any(|(_, Reverse(at))| *at == rank as usize);
        let own = rows.get(rank as usize).map_or(0, |rows| quota(rows) / all);
        i64::try_from(own).unwrap_or(each) + i64::from(more)
    }

    /// Whether partial sums of its rows are reduced over ranks.
    pub(super) fn is_by_rows(&self) -> bool {
        matches!(self, TableHome::Rows(_))
    }

    /// The ranks that have columns of it.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u32> {
        let parts = if let TableHome::Columns(parts) = self { parts.as_slice() } else { &[] };
        parts.iter().map(|(rank, _)| *rank)
    }

    /// Checks the placement.
    ///
    /// # Errors
    /// Where it names an unknown rank or a rank twice, or does not place the whole table.
    pub(super) fn check(&self, table: usize, size: &PlacedTable, ranks: u32) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Home { table, what });
        let whole = |parts: i64, all: i64, what: &str| {
            let text = || format!("has {parts} {what} on all ranks together, but {all} as recorded");
            if parts == all { Ok(()) } else { wrong(text()) }
        };
        match self {
            TableHome::Everywhere => Ok(()),
            TableHome::Columns(parts) if parts.is_empty() => wrong("is on no rank".to_owned()),
            TableHome::Columns(parts) => {
                let mut on: Vec<u32> = self.ranks().collect();
                on.sort_unstable();
                if let Some(&rank) = on.last().filter(|&&rank| rank >= ranks) {
                    return wrong(format!("is on rank {rank}, but there are {ranks} ranks, counted from 0"));
                }
                if let Some(pair) = on.windows(2).find(|pair| pair[0] == pair[1]) {
                    return wrong(format!("is on rank {} in two parts: merge them", pair[0]));
                }
                whole(parts.iter().map(|(_, columns)| columns).sum(), size.columns, "columns")
            }
            TableHome::Rows(rows) if rows.len() != ranks as usize => wrong(format!(
                "has its rows on {} of {ranks} ranks: rows are cut over all of them",
                rows.len()
            )),
            TableHome::Rows(rows) => whole(rows.iter().sum(), size.rows, "rows"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_go_where_the_rows_are() {
        let of = |rows: &[i64], each: i64| -> Vec<i64> {
            let home = TableHome::Rows(rows.to_vec());
            (0..rows.len()).map(|rank| home.lookups(rank as u32, each)).collect()
        };
        assert_eq!(of(&[250; 4], 10), [3, 3, 2, 2]);
        assert_eq!(of(&[334, 334, 332], 10), [4, 3, 3]);
        assert_eq!(of(&[970, 10, 10, 10], 100), [97, 1, 1, 1]);
        assert_eq!(of(&[999_997, 1, 1, 1], 100), [100, 0, 0, 0]);
        assert_eq!(TableHome::Everywhere.lookups(1, 7), 7);
    }
}
