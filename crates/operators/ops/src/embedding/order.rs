//! Order in which a gather reads a table: row after row, or one slice of columns of all rows before the next.
//!
//! A row with several lookups is read from memory once if it is still in the cache at the next lookup. With whole rows,
//! everything read in between separates the two uses; with a slice of w bytes, only w bytes of each row do. A slice of
//! all E rows that fits the cache is read from memory once, however far apart the lookups of a row are.
//!
//! With N lookups drawn evenly from E rows, the first k of which fill a cache of C bytes,
//! `E (1 - exp(-k / E)) bytes = C`, lookup n finds its row in the cache with the probability
//! `1 - (1 - 1/E)^min(n, k)` (Che's approximation).

use std::ops::Range;

use super::Table;
use crate::Cpu;
use crate::gemm::Machine;

/// The order of a gather.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// The order for which [`plan`] expects less time.
    #[default]
    Auto,
    /// Row after row.
    Rows,
    /// All lookups for this many columns (rounded up to 16), then all for the next.
    Columns(usize),
}

/// Expected reads of each order, and the choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The order to take: never [`Order::Auto`].
    pub order: Order,
    /// Bytes of the table that row after row reads from memory.
    pub row_bytes: f64,
    /// Bytes of the table that the best column slices read from memory.
    pub column_bytes: f64,
    /// Bytes of the output, written in either order.
    pub output_bytes: f64,
}

/// Narrowest slice, in bytes, that memory moves at nearly the rate of whole rows.
const NARROWEST: usize = 1024;

/// Share of all traffic that slices must save: accessing data piece by piece takes about a fifth longer than the same
/// bytes in whole rows.
const WORTH: f64 = 0.2;

/// Chooses the order of `lookups` lookups, uniform over `rows` rows of `row_bytes` bytes and `columns` columns, on
/// threads that share `cache` bytes.
#[must_use]
pub fn plan(rows: usize, row_bytes: usize, columns: usize, lookups: usize, cache: usize) -> Plan {
    let output_bytes = (lookups * columns * size_of::<f32>()) as f64;
    let by_rows = lookups_from_memory(rows, row_bytes, lookups, cache) * row_bytes as f64;
    let mut plan = Plan { order: Order::Rows, row_bytes: by_rows, column_bytes: by_rows, output_bytes };
    let mut slices = 2;
    while row_bytes / slices >= NARROWEST {
        let slice = row_bytes / slices;
        let read = lookups_from_memory(rows, slice, lookups, cache) * row_bytes as f64;
        // The widest of the slices that read about the least.
        if read < plan.column_bytes * 0.95 {
            plan.column_bytes = read;
            if read + output_bytes < (1.0 - WORTH) * (by_rows + output_bytes) {
                plan.order = Order::Columns(columns.div_ceil(slices).next_multiple_of(16));
            }
        }
        slices *= 2;
    }
    plan
}

/// Number of lookups whose row, or slice of a row, is not in the cache.
fn lookups_from_memory(rows: usize, bytes: usize, lookups: usize, cache: usize) -> f64 {
    let (rows, lookups) = (rows as f64, lookups as f64);
    let held = cache as f64 / bytes as f64;
    // Number of lookups until that many rows are in the cache; unlimited where the table fits.
    let full = if held < rows { -rows * (1.0 - held / rows).ln() } else { f64::INFINITY };
    let full = full.min(lookups);
    let missed = (1.0 - 1.0 / rows).powf(full);
    rows * (1.0 - missed) + (lookups - full) * missed
}

/// The column ranges of a gather, in the order in which they are read.
pub(super) fn column_slices(cpu: &Cpu, table: &Table<'_>, lookups: usize, order: Order) -> Vec<Range<usize>> {
    let (dim, row_bytes) = (table.dim(), table.row_bytes());
    let cache = || Machine::detect(cpu.isa()).caches[2].bytes;
    let order = match order {
        Order::Auto => plan(table.rows(), row_bytes, dim, lookups, cache()).order,
        given => given,
    };
    match order {
        Order::Columns(width) => {
            let width = width.max(1).next_multiple_of(16);
            (0..dim).step_by(width).map(|first| first..(first + width).min(dim)).collect()
        }
        _ => std::iter::once(0..dim).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_formula() {
        // 16,384 lookups of 8192 rows touch 8192 (1 - e^-2) of them.
        let distinct = lookups_from_memory(8192, 512, 16384, usize::MAX >> 1);
        assert!((distinct - 7083.0).abs() < 2.0, "{distinct}");
        assert!((lookups_from_memory(8192, 16384, 16384, 0) - 16384.0).abs() < 1e-6);
        // 50 MB of cache that the output bypasses: a simulated cache of 16 ways read 177 of 268 MB.
        let found = 1.0 - lookups_from_memory(8192, 16384, 16384, 50_000_000) / 16384.0;
        assert!((found - 0.34).abs() < 0.02, "{found}");
    }

    #[test]
    fn slices_are_chosen_only_where_rows_come_again_and_do_not_stay() {
        let cache = 32 << 20;
        assert!(matches!(plan(8192, 16384, 4096, 65536, cache).order, Order::Columns(_)));
        // Each row is looked up twice: most of the traffic is the output, and slices save less than they cost.
        assert_eq!(plan(8192, 16384, 4096, 16384, cache).order, Order::Rows);
        // Hardly any row is looked up twice.
        assert_eq!(plan(1_000_000, 16384, 4096, 65536, cache).order, Order::Rows);
        // The table fits the cache as it is.
        assert_eq!(plan(1000, 16384, 4096, 65536, cache).order, Order::Rows);
        // Rows too short to be cut.
        assert_eq!(plan(1_000_000, 512, 128, 4_000_000, cache).order, Order::Rows);
    }
}
