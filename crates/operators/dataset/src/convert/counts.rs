//! Pass 1: occurrences of each category, in bounded memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ids::Ids;
use super::parsed::Tokens;
use super::runs::Runs;
use super::table::{ENTRY, Entry, MISSING, Table};
use crate::Error;

/// Places of a column's table at the beginning.
const PLACES: usize = 1024;

/// Counts of all columns. Threads add to one column each at a time.
#[derive(Debug)]
pub(super) struct Counts {
    columns: Vec<Mutex<Column>>,
    budget: Budget,
    /// Folder for tables that do not fit in memory.
    folder: PathBuf,
}

#[derive(Debug)]
struct Column {
    table: Table,
    runs: Option<Runs>,
}

/// Memory of all tables.
#[derive(Debug)]
struct Budget {
    limit: u64,
    used: AtomicU64,
    /// Bytes that each column may have in any case.
    least: u64,
}

impl Budget {
    /// Whether a table may grow from `old` to `new` bytes; if so the new bytes are counted.
    fn grant(&self, old: u64, new: u64) -> bool {
        let grow = |used: u64| {
            let used = used - old + new;
            (used <= self.limit || new <= self.least).then_some(used)
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).is_ok()
    }
}

impl Counts {
    /// Counts of `columns` columns in `limit` bytes.
    pub(super) fn new(columns: usize, limit: u64, folder: &Path) -> Counts {
        let column = || Mutex::new(Column { table: Table::new(PLACES), runs: None });
        let used = AtomicU64::new((columns * PLACES * ENTRY) as u64);
        let budget = Budget { limit, used, least: limit / 2 / columns.max(1) as u64 };
        Counts { columns: (0..columns).map(|_| column()).collect(), budget, folder: folder.to_owned() }
    }

    /// Counts the tokens of a chunk. Threads with different `turn`s begin with different columns.
    pub(super) fn add(&self, columns: &[Tokens], turn: usize) -> Result<(), Error> {
        let count = columns.len();
        (0..count).map(|place| (place + turn * 5) % count.max(1)).try_for_each(|place| {
            let column = &mut *locked(&self.columns[place]);
            columns[place].values.iter().filter(|&&token| token != MISSING).try_for_each(|&token| {
                if column.table.is_full() {
                    self.make_room(column)?;
                }
                column.table.add(token, 1);
                Ok(())
            })
        })
    }

    /// Makes the table of a column larger, or moves its counts to the disk.
    fn make_room(&self, column: &mut Column) -> Result<(), Error> {
        let places = 2 * column.table.places();
        if self.budget.grant(column.table.bytes(), (places * ENTRY) as u64) {
            column.table.resize(places);
            return Ok(());
        }
        let runs = match &mut column.runs {
            Some(runs) => runs,
            none => none.insert(Runs::create(&self.folder)?),
        };
        runs.append(&column.table.drain_sorted())
    }

    /// Ids of the categories that occur at least `threshold` times, in `limit` bytes: 1, 2, ... from the most to the
    /// least frequent, equally frequent ones in the order of their tokens.
    pub(super) fn into_ids(self, threshold: u32, limit: u64, names: &[String]) -> Result<Ids, Error> {
        let (mut tables, mut bytes) = (Vec::new(), 0);
        for (column, name) in self.columns.into_iter().zip(names) {
            let column = column.into_inner().unwrap_or_else(PoisonError::into_inner);
            let mut kept = column.kept(threshold)?;
            let places = Table::places_for(kept.len());
            bytes += (places * ENTRY) as u64;
            if bytes > limit || kept.len() >= i32::MAX as usize {
                return Err(Error::Categories { column: name.clone(), kept: kept.len(), limit });
            }
            kept.sort_unstable_by_key(|entry| (std::cmp::Reverse(entry.number), entry.token()));
            let mut table = Table::new(places);
            (1..).zip(&kept).for_each(|(id, entry)| table.add(entry.token(), id));
            tables.push((table, kept.len() as u32));
        }
        Ok(Ids::Tables(tables))
    }

    /// Number of columns with counts on the disk.
    #[cfg(test)]
    fn on_disk(&self) -> usize {
        self.columns.iter().filter(|column| locked(column).runs.is_some()).count()
    }
}

impl Column {
    /// Counts of at least `threshold`.
    fn kept(mut self, threshold: u32) -> Result<Vec<Entry>, Error> {
        let Some(mut runs) = self.runs.take() else {
            let mut entries = self.table.into_entries();
            entries.retain(|entry| entry.number >= threshold);
            return Ok(entries);
        };
        runs.append(&self.table.drain_sorted())?;
        drop(self);
        let mut kept = Vec::new();
        runs.merge(|entry| {
            if entry.number >= threshold {
                kept.push(entry);
            }
        })?;
        Ok(kept)
    }
}

fn locked(column: &Mutex<Column>) -> MutexGuard<'_, Column> {
    column.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of pseudo-random tokens, counted in `limit` bytes; and the number of columns on the disk.
    fn ids(limit: u64, threshold: u32) -> (Vec<Vec<i32>>, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let counts = Counts::new(2, limit, folder.path());
        let token = |place: u64| place * place % 40_009 / (1 + place % 7);
        let chunk = |range: std::ops::Range<u64>| {
            let values: Vec<u64> = range.map(token).collect();
            [Tokens::fixed(values.iter().map(|token| token % 5).collect()), Tokens::fixed(values)]
        };
        for (turn, from) in (0..400_000).step_by(1000).enumerate() {
            counts.add(&chunk(from..from + 1000), turn).expect("counted");
        }
        let on_disk = counts.on_disk();
        let names = ["few".to_owned(), "many".to_owned()];
        let ids = counts.into_ids(threshold, 1 << 30, &names).expect("ids");
        let found = [0, 1].map(|column| {
            let mut found = Vec::new();
            ids.indices(column, &(0..45_000).collect::<Vec<_>>(), &mut found);
            found
        });
        (found.to_vec(), on_disk)
    }

    #[test]
    fn ids_do_not_depend_on_the_memory() {
        for threshold in [1, 3, 40] {
            let (in_memory, none) = ids(1 << 30, threshold);
            let (merged, some) = ids(100_000, threshold);
            assert_eq!((none, some), (0, 1));
            assert_eq!(in_memory, merged, "{threshold}");
        }
    }

    #[test]
    fn ids_descend_with_the_count() {
        let (ids, _) = ids(1 << 30, 1);
        assert_eq!(ids[0].iter().filter(|&&id| id > 0).count(), 5);
        let mut known: Vec<i32> = ids[1].iter().copied().filter(|&id| id > 0).collect();
        known.sort_unstable();
        assert!(known.iter().copied().eq(1..=known.len() as i32), "each id once");
    }

    #[test]
    fn too_many_categories_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let counts = Counts::new(1, 1 << 20, folder.path());
        counts.add(&[Tokens::fixed((0..10_000).collect())], 0).expect("counted");
        let error = counts.into_ids(1, 1000, &["C1".to_owned()]).expect_err("too many");
        assert!(error.to_string().contains("column C1 has 10000 categories"), "{error}");
    }
}
