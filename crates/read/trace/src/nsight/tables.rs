//! Tables of an export of any version: missing columns read as absent values.

use crate::kineto::DeviceProperties;
use crate::list;
use crate::units::Nanos;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result, ffi};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum size of a row, in bytes of the file.
const SHORTEST_ROW: u64 = 5;

/// Tables of an export.
pub(super) struct Tables<'c> {
    connection: &'c Connection,
    /// Names of the existing tables.
    names: BTreeSet<String>,
    /// Length of the file, in bytes.
    length: u64,
}

/// One row of a table.
pub(super) struct Row<'r> {
    row: &'r rusqlite::Row<'r>,
    columns: &'r BTreeMap<String, usize>,
    room: &'r Room,
}

/// Remaining bytes for the rows and texts of a table. The pages of a damaged file can refer to one another, and
/// so contain a row any number of times.
struct Room(Cell<u64>);

impl Room {
    /// Returns the room in a file of `length` bytes: a UTF-16 text is read as UTF-8, which is up to half as long again.
    fn new(length: u64) -> Room {
        Room(Cell::new(length.saturating_mul(2)))
    }

    fn take(&self, bytes: u64) {
        self.0.set(self.0.get().saturating_sub(bytes));
    }

    fn check(&self) -> Result<()> {
        let words = "a table has more rows than the file has room for";
        if self.0.get() == 0 { Err(failure(ffi::SQLITE_CORRUPT, words)) } else { Ok(()) }
    }
}

impl Row<'_> {
    /// Returns a whole number; `None` if absent.
    pub(super) fn number(&self, column: &str) -> Option<i64> {
        match self.row.get_ref(*self.columns.get(column)?) {
            Ok(ValueRef::Integer(number)) => Some(number),
            _ => None,
        }
    }

    /// Returns a time in nanoseconds; `None` if absent.
    pub(super) fn time(&self, column: &str) -> Option<Nanos> {
        self.number(column).map(Nanos)
    }

    /// Returns a text; `None` if absent.
    pub(super) fn text(&self, column: &str) -> Option<String> {
        match self.row.get_ref(*self.columns.get(column)?) {
            Ok(ValueRef::Text(text)) => {
                self.room.take(text.len() as u64);
                Some(String::from_utf8_lossy(text).into_owned())
            }
            _ => None,
        }
    }
}

impl<'c> Tables<'c> {
    /// Returns the tables of a file of `length` bytes. Virtual tables, which have no pages, are excluded.
    pub(super) fn read(connection: &'c Connection, length: u64) -> Result<Tables<'c>> {
        let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0";
        let mut query = connection.prepare(tables)?;
        let names: Result<BTreeSet<String>> = query.query_map([], |row| row.get(0))?.collect();
        Ok(Tables { connection, names: names?, length })
    }

    /// Whether Nsight Systems wrote it: it has texts and traced events.
    pub(super) fn is_export(&self) -> bool {
        let traced = ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"];
        self.names.contains("StringIds") && traced.iter().any(|table| self.names.contains(*table))
    }

    /// Calls `take` with each row of a table, in file order; with none if the table does not exist.
    pub(super) fn each(&self, table: &str, mut take: impl FnMut(&Row<'_>)) -> Result<()> {
        if !self.names.contains(table) {
            return Ok(());
        }
        let names = self.columns(table)?;
        let quoted: Vec<String> =
            names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
        let wanted = quoted.join(", ");
        let mut query =
            self.connection.prepare(&format!("SELECT {wanted} FROM \"{table}\" ORDER BY rowid"))?;
        let columns: BTreeMap<String, usize> = names.into_iter().zip(0..).collect();
        let (room, mut count) = (Room::new(self.length), 0);
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            room.take(SHORTEST_ROW);
            take(&Row { row, columns: &columns, room: &room });
            room.check()?;
            count += 1;
            if count > list::MOST {
                return Err(failure(ffi::SQLITE_TOOBIG, list::TOO_MANY));
            }
        }
        Ok(())
    }

    /// Returns the stored columns of a table. Generated columns are excluded, since their expressions could take any time.
    fn columns(&self, table: &str) -> Result<Vec<String>> {
        let mut query = self.connection.prepare(&format!("PRAGMA table_xinfo(\"{table}\")"))?;
        let stored = query.query_map([], |row| Ok((row.get("name")?, row.get("hidden")?)))?;
        let stored: Result<Vec<(String, i64)>> = stored.collect();
        Ok(stored?.into_iter().filter(|(_, hidden)| *hidden == 0).map(|(name, _)| name).collect())
    }

    /// Calls `take` with each text and its id.
    pub(super) fn strings(&self, mut take: impl FnMut(i64, String)) -> Result<()> {
        self.each("StringIds", |row| {
            if let (Some(id), Some(text)) = (row.number("id"), row.text("value")) {
                take(id, text);
            }
        })
    }

    /// Returns the ids of the processes that ran kernels.
    pub(super) fn processes(&self) -> Result<Vec<i64>> {
        let mut found = BTreeSet::new();
        self.each("CUPTI_ACTIVITY_KIND_KERNEL", |row| {
            found.extend(super::process_of(row.number("globalPid")))
        })?;
        Ok(found.into_iter().collect())
    }

    pub(super) fn devices(&self) -> Result<Vec<DeviceProperties>> {
        let mut found = Vec::new();
        self.each("TARGET_INFO_GPU", |row| found.push(super::device(row)))?;
        Ok(found)
    }
}

fn failure(code: std::ffi::c_int, words: &str) -> Error {
    Error::SqliteFailure(ffi::Error::new(code), Some(words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(sql: &str) -> Connection {
        let connection = Connection::open_in_memory().expect("a database");
        connection.execute_batch(sql).expect("tables");
        connection
    }

    #[test]
    fn what_a_file_computes_is_not_read() {
        let connection = database(
            "CREATE TABLE StringIds (id INTEGER, value TEXT, long AS (zeroblob(900000000)), \"a \"\"name\" INTEGER);
             INSERT INTO StringIds VALUES (7, 'gemm', 3);
             CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(text);",
        );
        let tables = Tables::read(&connection, 10_000).expect("tables");
        assert!(!tables.names.contains("NVTX_EVENTS"));
        assert_eq!(tables.columns("StringIds").expect("columns"), ["id", "value", "a \"name"]);
        let mut texts = Vec::new();
        tables.strings(|id, text| texts.push((id, text))).expect("texts");
        assert_eq!(texts, [(7, "gemm".to_owned())]);
    }

    #[test]
    fn a_file_has_room_for_so_many_rows() {
        let connection = database(
            "CREATE TABLE StringIds (id INTEGER, value TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO StringIds SELECT i, 'text' FROM n;",
        );
        let read = |length: u64| Tables::read(&connection, length).expect("tables").strings(|_, _| ());
        assert_eq!(read(10_000), Ok(()));
        let error = read(1_000).expect_err("too many rows").to_string();
        assert!(error.contains("more rows than the file has room for"), "{error}");
    }
}
