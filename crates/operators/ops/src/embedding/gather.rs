//! Rows without pooling: one row of the output for each lookup.

use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bag::{Bags, Output, STREAM, pool_bags};
use super::order::{Order, column_slices};
use super::{BadLookup, Bounds, EmbeddingError, Ints, Lookups, Pooling, Report, Table, Tables};
use crate::Cpu;
use crate::shared::Shared;

/// Bytes of output that a part writes.
const PART: usize = 256 << 10;

/// Writes row `indices[n]` of the table to row `n` of the output, `[N, D]` with rows `stride` elements apart. Indices
/// of any shape are given as one flat run of numbers: the output has their shape, and D.
///
/// A lookup out of range gives a row of zeros unless it is an error. After an error the output is partly written.
///
/// # Errors
///
/// An output too small; with [`Bounds::Error`], an index that is out of range.
pub fn gather<'a>(
    cpu: &Cpu,
    table: &Table<'_>,
    indices: impl Into<Ints<'a>>,
    bounds: Bounds,
    order: Order,
    out: &mut [f32],
    stride: usize,
) -> Result<Report, EmbeddingError> {
    let indices = indices.into();
    super::check_rows("output", indices.len(), table.dim(), out.len(), stride)?;
    let slices = column_slices(cpu, table, indices.len(), order);
    let bags = Bags { indices, offsets: None, weights: None };
    if rows(cpu, &[(table, 0..indices.len())], bags, bounds, &slices, out, stride) {
        return Ok(Report::default());
    }
    let mut report = Report::default();
    for lookup in 0..indices.len() {
        let (index, rows) = (indices.at(lookup), table.rows());
        if index as u64 >= rows as u64 {
            if bounds == Bounds::Error {
                let name = table.name().to_owned();
                return Err(EmbeddingError::Index { table: 0, name, bag: lookup, lookup, index, rows });
            }
            report.add(BadLookup { table: 0, bag: lookup, lookup, index });
        }
    }
    Ok(report)
}

/// Writes the row of each lookup of all tables, times its weight where there are weights, to row `n` of the output,
/// `[N, D]` with rows `stride` elements apart: for tables of one D with pooling none.
///
/// A lookup out of range gives a row of zeros unless it is an error. After an error the output is partly written.
///
/// # Errors
///
/// Offsets that do not fit the tables, or decrease; an output too small; tables of different D or with another pooling;
/// with [`Bounds::Error`], an index that is out of range.
pub fn sequence(
    cpu: &Cpu,
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
    out: &mut [f32],
    stride: usize,
) -> Result<Report, EmbeddingError> {
    lookups.check_shape(tables)?;
    let dim = tables.iter().next().map_or(0, Table::dim);
    for (at, table) in tables.iter().enumerate() {
        let why = match tables.pooling(at) {
            Pooling::None if table.dim() == dim => continue,
            Pooling::None => {
                "all tables of a sequence have as many columns as the first: look up the others apart"
            }
            _ => "a sequence does not pool: use `forward`, or pooling none",
        };
        return Err(EmbeddingError::Pooling { table: at, name: table.name().to_owned(), why });
    }
    super::check_rows("output", lookups.len(), dim, out.len(), stride)?;
    let bags = Bags { indices: lookups.indices(), offsets: None, weights: lookups.weights() };
    let stretches: Vec<_> = tables.iter().enumerate().map(|(at, table)| (table, lookups.table(at))).collect();
    let good = rows(cpu, &stretches, bags, bounds, slice::from_ref(&(0..dim)), out, stride);
    if good && (0..tables.len()).all(|table| lookups.rising(table, &(0..lookups.bags()))) {
        return Ok(Report::default());
    }
    lookups.check(cpu, tables, bounds)
}

/// Copies the rows of these tables at these places, column range by column range, and returns whether all indices are
/// in range; the rows of those that are not become zeros.
fn rows(
    cpu: &Cpu,
    stretches: &[(&Table<'_>, Range<usize>)],
    bags: Bags<'_>,
    bounds: Bounds,
    columns: &[Range<usize>],
    out: &mut [f32],
    stride: usize,
) -> bool {
    let aligned = out.as_ptr().addr().is_multiple_of(64) && stride.is_multiple_of(16);
    let stream =
        aligned && size_of_val(out) >= STREAM && columns.iter().all(|range| range.end.is_multiple_of(16));
    let out = Output { out: Shared::new(out), stride, column: 0, stream };
    let parts = parts(cpu.threads(), stretches, columns);
    let wrong = AtomicUsize::new(0);
    cpu.run(parts.len(), |part| {
        let (table, places, columns) = &parts[part];
        let all = (*table, Pooling::None, columns.clone());
        // SAFETY: each part is done once. Two parts differ in places, which are rows of the output and no closer than
        // their columns, as was checked; or in columns, whose ranges are disjoint; or in tables, whose lookups are
        // consecutive, since the offsets where tables begin were found to increase.
        if !unsafe { pool_bags(cpu.arch(), bags, all, places.clone(), bounds, out) } {
            wrong.fetch_add(1, Ordering::Relaxed);
        }
    });
    wrong.into_inner() == 0
}

/// A table, some of its lookups' places, and columns of them.
type Part<'a> = (&'a Table<'a>, Range<usize>, Range<usize>);

/// Divides the work: each thread takes its share of the lookups through all column ranges, so that the threads are in
/// the same columns at the same time and share the cached part of them.
fn parts<'a>(
    threads: usize,
    stretches: &[(&'a Table<'a>, Range<usize>)],
    columns: &[Range<usize>],
) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let within = |all: &Range<usize>, shares, index| {
        let share = crate::cpu::share(all.len(), shares, index);
        all.start + share.start..all.start + share.end
    };
    // With a single range of columns, threads need not stay in step, and tables need not be divided.
    let shares = if columns.len() > 1 { threads } else { 1 };
    for share in 0..shares {
        for range in columns {
            for (table, places) in stretches {
                let count = (places.len() / shares * range.len() * 4 / PART).max(1);
                let own = within(places, shares, share);
                parts.extend((0..count).map(|part| (*table, within(&own, count, part), range.clone())));
            }
        }
    }
    parts
}
