//! Winners of maximum pooling: the lookup of a bag that is the largest in a column, and gets the gradient.

use super::super::{Bounds, Lookups, Pooling, Table, Tables, Weights};
use crate::Cpu;

/// No lookup gets the gradient: the bag is empty, or the zero of an out-of-range lookup is the largest.
pub const NO_WINNER: u32 = u32::MAX;

/// Number of bags of one part of the work.
const BAGS: usize = 256;

/// Finds `[B, D]` positions for each table whose pooling is [`Pooling::Max`]: the lookup, counted from the table's
/// first, that is the largest of its bag in that column, the first of equals; empty for other tables.
///
/// The lookups must have been [checked](Lookups::check).
#[must_use]
pub fn winners(cpu: &Cpu, tables: &Tables<'_>, lookups: &Lookups<'_>, bounds: Bounds) -> Vec<Vec<u32>> {
    let mut winners: Vec<Vec<u32>> = (0..tables.len())
        .map(|table| match tables.pooling(table) {
            Pooling::Max => vec![NO_WINNER; lookups.bags() * tables.table(table).dim()],
            _ => Vec::new(),
        })
        .collect();
    let mut parts = Vec::new();
    for (table, winners) in winners.iter_mut().enumerate() {
        let dim = tables.table(table).dim();
        parts.extend(
            winners.chunks_mut(BAGS * dim).enumerate().map(|(part, rows)| (table, part * BAGS, rows)),
        );
    }
    cpu.run_with(&mut parts, |_, (table, first, rows)| {
        let (from, start) = (tables.table(*table), lookups.table(*table).start);
        let mut largest = vec![0.0; from.dim()];
        for (bag, winners) in rows.chunks_exact_mut(from.dim()).enumerate() {
            let mut seen = false;
            for place in lookups.bag(*table, *first + bag) {
                let index = lookups.indices().at(place);
                let row = usize::try_from(index).ok().filter(|&row| row < from.rows());
                if row.is_none() && bounds == Bounds::Ignore {
                    continue;
                }
                for (column, (largest, winner)) in largest.iter_mut().zip(&mut *winners).enumerate() {
                    let value = row.map_or(0.0, |row| weight(from, row, column));
                    if !seen || value > *largest {
                        *largest = value;
                        *winner = if row.is_some() { (place - start) as u32 } else { NO_WINNER };
                    }
                }
                seen = true;
            }
        }
    });
    winners
}

/// An element of a table that can be trained; 0 for other tables, which have no gradient.
fn weight(table: &Table<'_>, row: usize, column: usize) -> f32 {
    let at = |pitch: usize| row * (table.pitch() / pitch) + column;
    match table.weights() {
        Some(Weights::F32(weights)) => weights[at(4)],
        Some(Weights::F16(weights)) => weights[at(2)].to_f32(),
        Some(Weights::Bf16(weights)) => weights[at(2)].to_f32(),
        None => 0.0,
    }
}
