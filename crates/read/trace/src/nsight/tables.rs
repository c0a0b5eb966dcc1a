//! The tables of an export, of whatever version: columns that are missing read as nothing.

use crate::kineto::DeviceProperties;
use crate::units::Nanos;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The tables of an export.
pub(super) struct Tables<'c> {
    connection: &'c Connection,
    /// The tables that are there.
    names: BTreeSet<String>,
}

/// One row.
pub(super) struct Row<'r> {
    row: &'r rusqlite::Row<'r>,
    columns: &'r BTreeMap<String, usize>,
}

impl Row<'_> {
    /// A whole number; `None` where it is not there.
    pub(super) fn number(&self, column: &str) -> Option<i64> {
        match self.row.get_ref(*self.columns.get(column)?) {
            Ok(ValueRef::Integer(number)) => Some(number),
            _ => None,
        }
    }

    /// A time in nanoseconds; `None` where it is not there.
    pub(super) fn time(&self, column: &str) -> Option<Nanos> {
        self.number(column).map(Nanos)
    }

    /// A text; `None` where it is not there.
    pub(super) fn text(&self, column: &str) -> Option<String> {
        match self.row.get_ref(*self.columns.get(column)?) {
            Ok(ValueRef::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }
}

impl<'c> Tables<'c> {
    pub(super) fn of(connection: &'c Connection) -> Result<Tables<'c>> {
        let mut query = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        let names: Result<BTreeSet<String>> = query.query_map([], |row| row.get(0))?.collect();
        Ok(Tables { connection, names: names? })
    }

    /// Whether Nsight Systems wrote it: it has texts, and something that was traced.
    pub(super) fn is_export(&self) -> bool {
        let traced = ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"];
        self.names.contains("StringIds") && traced.iter().any(|table| self.names.contains(*table))
    }

    /// Calls `take` with each row of a table, in the order of the file; with none where the table is not there.
    pub(super) fn each(&self, table: &str, mut take: impl FnMut(&Row<'_>)) -> Result<()> {
        if !self.names.contains(table) {
            return Ok(());
        }
        let mut query = self.connection.prepare(&format!("SELECT * FROM \"{table}\" ORDER BY rowid"))?;
        let columns: BTreeMap<String, usize> = query.column_names().map(str::to_owned).zip(0..).collect();
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            take(&Row { row, columns: &columns });
        }
        Ok(())
    }

    /// Calls `take` with each text and its id.
    pub(super) fn strings(&self, mut take: impl FnMut(i64, String)) -> Result<()> {
        self.each("StringIds", |row| {
            if let (Some(id), Some(text)) = (row.number("id"), row.text("value")) {
                take(id, text);
            }
        })
    }

    /// The processes that ran kernels, by their numbers.
    pub(super) fn processes(&self) -> Result<Vec<i64>> {
        let mut found = BTreeSet::new();
        self.each("CUPTI_ACTIVITY_KIND_KERNEL", |row| {
            found.extend(super::process_of(row.number("globalPid")))
        })?;
        Ok(found.into_iter().collect())
    }

    /// The GPUs.
    pub(super) fn devices(&self) -> Result<Vec<DeviceProperties>> {
        let mut found = Vec::new();
        self.each("TARGET_INFO_GPU", |row| found.push(super::device(row)))?;
        Ok(found)
    }
}
