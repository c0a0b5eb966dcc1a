//! Where a table lies.

use super::LookedUp;
use crate::error::Error;

/// Where a table lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableHome {
    /// Every rank has all of it.
    Everywhere,
    /// Its columns lie on these ranks: how many on each. A whole table lies on one.
    Columns(Vec<(u32, i64)>),
    /// Its rows are cut over all ranks: how many each has.
    Rows(Vec<i64>),
}

/// What a rank has of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Whole,
    /// So many columns.
    Columns(i64),
    /// So many rows, one of so many parts.
    Rows {
        rows: i64,
        of: u32,
    },
}

impl TableHome {
    /// What a rank has; `None` where it has nothing, or what every rank has.
    pub(super) fn on(&self, rank: u32) -> Option<Own> {
        match self {
            TableHome::Everywhere => None,
            TableHome::Columns(parts) => {
                let (_, columns) = parts.iter().find(|(on, _)| *on == rank)?;
                Some(if parts.len() == 1 { Own::Whole } else { Own::Columns(*columns) })
            }
            TableHome::Rows(rows) => {
                let own = *rows.get(rank as usize)?;
                Some(Own::Rows { rows: own, of: rows.len() as u32 })
            }
        }
    }

    /// Whether sums of parts of its rows are added over ranks.
    pub(super) fn is_by_rows(&self) -> bool {
        matches!(self, TableHome::Rows(_))
    }

    /// The ranks that have columns of it.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u32> {
        let parts = if let TableHome::Columns(parts) = self { parts.as_slice() } else { &[] };
        parts.iter().map(|(rank, _)| *rank)
    }

    /// # Errors
    /// Where it names a rank that is not there, or twice, or does not hold all of the table.
    pub(super) fn check(&self, table: usize, size: &LookedUp, ranks: u32) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Home { table, what });
        let whole = |parts: i64, all: i64, what: &str| {
            let text = || format!("has {parts} {what} on all ranks together, and {all} as recorded");
            if parts == all { Ok(()) } else { wrong(text()) }
        };
        match self {
            TableHome::Everywhere => Ok(()),
            TableHome::Columns(parts) if parts.is_empty() => wrong("lies nowhere".to_owned()),
            TableHome::Columns(parts) => {
                let mut on: Vec<u32> = self.ranks().collect();
                on.sort_unstable();
                if let Some(&rank) = on.last().filter(|&&rank| rank >= ranks) {
                    return wrong(format!("lies on rank {rank}, and there are {ranks}, from 0"));
                }
                if let Some(pair) = on.windows(2).find(|pair| pair[0] == pair[1]) {
                    return wrong(format!("lies on rank {} in two parts: put them together", pair[0]));
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
