//! Shared code of the families that look rows up by index: the table's reads, and the row an operand belongs to.

use steptime_aten::{KernelCall, Operand, Role, Slot};
use steptime_launch::cache::{Lookups, Order, dram_reads};
use steptime_launch::{Indices, Popularity};

use crate::device::context::Context;
use crate::device::spec::DeviceSpec;

use super::memory::{SECTOR, Traffic};

/// Bytes moved for a row: whole sectors, and one more if rows begin between two.
pub(super) fn moved_row(row_bytes: f64) -> f64 {
    let row = row_bytes.max(1.0);
    if row % SECTOR == 0.0 {
        row
    } else if row < SECTOR {
        // Several rows in a sector: a few of them span two.
        SECTOR * (1.0 + row / SECTOR / 2.0)
    } else {
        (row / SECTOR).ceil() * SECTOR + SECTOR / 2.0
    }
}

/// Traffic of a kernel that reads rows of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableTraffic {
    /// Traffic of all operands.
    pub traffic: Traffic,
    /// Different rows.
    pub distinct: f64,
    /// Bytes of the table from device memory.
    pub table_dram: f64,
    /// Share of the lookups that go to the most popular row.
    pub largest_share: f64,
}

/// Traffic of `lookups` in the operand `table`; the other operands are touched once each.
pub(super) fn table_traffic(
    call: &KernelCall,
    ctx: &Context,
    spec: &DeviceSpec,
    table: usize,
    lookups: &Lookups,
) -> TableTraffic {
    let popularity = Popularity::new(lookups.rows, &ctx.indices);
    let cache = spec.l2.effective_bytes as f64;
    let from_dram = dram_reads(lookups, &popularity, cache) * (1.0 - ctx.residency(table, spec));
    let distinct = popularity.distinct(lookups.lookups);
    let whole = lookups.lookups * lookups.row_bytes;
    let (mut read, mut missed, mut written) = (whole, from_dram, 0.0);
    let mut footprint = distinct * lookups.row_bytes;
    for (at, operand) in call.operands.iter().enumerate() {
        let bytes = operand.bytes as f64;
        if operand.role != Role::Read {
            written += if at == table { whole } else { bytes };
        }
        if at == table {
            continue;
        }
        footprint += bytes;
        if operand.role != Role::Write {
            read += bytes;
            missed += bytes * (1.0 - ctx.residency(at, spec));
        }
    }
    let traffic = Traffic::new(read, missed, written, footprint, spec);
    TableTraffic { traffic, distinct, table_dram: from_dram, largest_share: popularity.largest_share() }
}

/// Whether indices ascend, and the share that is padding, if they were counted: features that only stages use.
pub(super) fn order_and_padding(ctx: &Context) -> [f32; 2] {
    match &ctx.indices {
        Indices::Counts(counts) => [f32::from(u8::from(counts.sorted)), counts.padding_share() as f32],
        _ => [0.0, 0.0],
    }
}

/// Index of the table among the operands: the largest one that is read, before any index.
pub(super) fn table_operand(call: &KernelCall, updated: bool) -> usize {
    let fits = |role: Role| if updated { role != Role::Read } else { role != Role::Write };
    call.operands.iter().position(|operand| fits(operand.role)).unwrap_or(0)
}

/// Lookups made row after row.
pub(super) fn in_rows(rows: u64, lookups: u64, row_bytes: f64, written: f64) -> Lookups {
    Lookups {
        rows: (rows as f64).max(1.0),
        row_bytes: moved_row(row_bytes),
        lookups: lookups as f64,
        written,
        order: Order::Rows,
    }
}

/// Traffic if an operand is traversed nearly in order: each of its bytes comes from device memory once,
/// and `elements` single elements pass the cache, one sector each.
pub(super) fn local_traffic(
    call: &KernelCall,
    ctx: &Context,
    spec: &DeviceSpec,
    table: usize,
    elements: f64,
) -> TableTraffic {
    let whole = Traffic::from_call(call, ctx, spec);
    let own = call.operands.get(table).map_or(0.0, |operand| operand.bytes as f64);
    let updated = call.operands.get(table).is_some_and(|operand| operand.role != Role::Read);
    let read = whole.read + elements * SECTOR;
    let written = whole.written + if updated { elements * SECTOR } else { 0.0 };
    let table_dram = own.min(elements * SECTOR) * (1.0 - ctx.residency(table, spec));
    let missed = whole.dram_read - own * (1.0 - ctx.residency(table, spec)) + table_dram;
    let traffic = Traffic::new(read, missed, written, call.footprint() as f64, spec);
    TableTraffic { traffic, distinct: elements, table_dram, largest_share: 1.0 / elements.max(1.0) }
}

/// Number of uses of each index: `index` and `index_put` with dimensions before or after the indexed ones
/// repeat their indices for each of them.
pub(super) fn repeats(call: &KernelCall, table: usize, lookups: u64, row_bytes: u64) -> f64 {
    let once = (lookups as f64 * row_bytes as f64).max(1.0);
    let own = |operand: &Operand| operand.slot == Slot::Scratch;
    let others = call.operands.iter().enumerate().filter(|&(at, operand)| at != table && !own(operand));
    let values = others.map(|(_, operand)| operand.bytes).max().unwrap_or(0) as f64;
    (values / once).round().max(1.0)
}
