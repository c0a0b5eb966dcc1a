//! The forward pass of embedding bags over many tables at once.

mod chunk;
mod dispatch;
mod reference;
mod room;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use reference::forward_reference;

pub(super) use self::chunk::{Bags, Output};
use self::room::Room;
use super::{Bounds, EmbeddingError, Lookups, Pooling, Report, Table, Tables};
use crate::Cpu;
use crate::arch::Arch;
use crate::shared::Shared;

/// Bytes of rows that a part reads: so many that the cost of beginning a part is small beside that of reading them.
const PART: usize = 256 << 10;

/// Size in bytes up to which a table fits a core's own caches, where prefetching only costs instructions.
const NEAR: usize = 512 << 10;

/// Size in bytes from which on an output no longer fits the caches beside the rows that are read.
pub(super) const STREAM: usize = 16 << 20;

/// Pools the rows of each bag of each table: `out[b, column(t)..]` is the pooled rows of bag `b` of table `t`, in an
/// output `[B, D_0 + D_1 + ...]` with rows `stride` elements apart.
///
/// The result is bit-identical on every instruction set and at any number of threads. After an error the output is
/// partly written.
///
/// # Errors
///
/// Offsets that do not fit the tables, or decrease; an output too small; [`Pooling::None`]; weights where a table pools
/// by maximum; with [`Bounds::Error`], an index that is out of range.
pub fn forward(
    cpu: &Cpu,
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
    out: &mut [f32],
    stride: usize,
) -> Result<Report, EmbeddingError> {
    lookups.check_shape(tables)?;
    check_output(tables, lookups, out.len(), stride)?;
    let aligned = out.as_ptr().addr().is_multiple_of(64) && stride.is_multiple_of(16);
    let large = size_of_val(out) >= STREAM;
    let parts = parts(tables, lookups);
    let wrong = AtomicUsize::new(usize::MAX);
    let shared = Shared::new(out);
    cpu.run(parts.len(), |part| {
        let (at, bags) = &parts[part];
        let (table, pooling, column) = (tables.table(*at), tables.pooling(*at), tables.column(*at));
        let stream = large && aligned && column.is_multiple_of(16) && table.dim().is_multiple_of(16);
        let out = Output { out: shared, stride, column, stream };
        let all = (table, pooling, 0..table.dim());
        // SAFETY: each part is done once. Two parts of one table have different bags, so different rows of the output,
        // which are at least `stride` apart, no less than all columns. Two parts of different tables have different
        // columns, since the set of tables places them next to each other by the tables' shapes, which never change.
        let pool = || unsafe {
            pool_bags(cpu.arch(), Bags::from_lookups(lookups, *at), all, bags.clone(), bounds, out)
        };
        if !(lookups.rising(*at, bags) && pool()) {
            wrong.fetch_min(part, Ordering::Relaxed);
        }
    });
    // Errors are rare: they are only detected above, and located here.
    let mut report = Report::default();
    for (at, bags) in parts.get(wrong.into_inner()..).unwrap_or_default() {
        lookups.report(tables, *at, bags.clone(), bounds, &mut report)?;
    }
    Ok(report)
}

/// Checks that the output is long enough, and that it can hold the pooling of every table.
fn check_output(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    found: usize,
    stride: usize,
) -> Result<(), EmbeddingError> {
    super::check_rows("output", lookups.bags(), tables.columns(), found, stride)?;
    for (table, rows) in tables.iter().enumerate() {
        let why = match tables.pooling(table) {
            Pooling::None => {
                "pooling none gives one row for each lookup, which a row for each bag cannot hold: use `sequence`"
            }
            Pooling::Max if lookups.weights().is_some() => {
                "the maximum takes no per-sample weights: leave them out"
            }
            _ => continue,
        };
        return Err(EmbeddingError::Pooling { table, name: rows.name().to_owned(), why });
    }
    Ok(())
}

/// Divides all bags of all tables into parts of nearly the same cost: a table and some of its bags each.
fn parts(tables: &Tables<'_>, lookups: &Lookups<'_>) -> Vec<(usize, Range<usize>)> {
    let mut parts = Vec::new();
    let bags = lookups.bags();
    for (at, table) in tables.iter().enumerate() {
        let read = lookups.table(at).len() * table.row_bytes().next_multiple_of(64);
        let cost = read + bags * table.dim() * size_of::<f32>();
        let count = (cost / PART).clamp(1, bags.max(1));
        parts.extend((0..count).map(|part| (at, crate::cpu::share(bags, count, part))));
    }
    parts
}

/// Pools these columns of these bags, whose offsets increase, chunk by chunk, and returns whether all indices are in
/// range. With [`Bounds::Error`] the work ends at the first chunk with an index out of range.
///
/// # Safety
///
/// No other code accesses these columns of this table in the output rows of these bags.
pub(super) unsafe fn pool_bags(
    arch: Arch,
    source: Bags<'_>,
    (table, pooling, columns): (&Table<'_>, Pooling, Range<usize>),
    bags: Range<usize>,
    bounds: Bounds,
    out: Output<'_>,
) -> bool {
    let mut all_good = true;
    let mut room = Room::default();
    let mut next = bags.start;
    while next < bags.end {
        let (chunk, good) = room.fill(arch, source, (table, pooling, columns.clone()), next..bags.end);
        next = chunk.bags.end;
        all_good &= good;
        // SAFETY: by the caller's promise.
        unsafe {
            if good {
                dispatch::pool(arch, &chunk, out, table.bytes().len() > NEAR);
            } else if bounds == Bounds::Error {
                return false;
            } else {
                reference::pool_chunk(&chunk, bounds, out);
            }
        }
    }
    all_good
}
