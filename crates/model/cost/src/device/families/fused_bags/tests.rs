//! Anchors of `benches/peers/results/h200.txt`, measured on an H200 in CUDA graphs.

use std::sync::Arc;

use steptime_aten::kernel::{FusedBags, FusedTable, Pooling, RowOptimizer};
use steptime_aten::{Kernel, KernelCall, Operand, Role, Slot};
use steptime_launch::Indices;

use super::Fused;
use crate::device::context::Context;
use crate::device::families::fixture::{call, near, shipped};
use crate::device::family::Family;

/// Rows of the tables of Criteo Kaggle.
const CRITEO: [u64; 26] = [
    1460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5683, 8_351_593, 3194, 27, 14_992,
    5_461_306, 10, 5652, 2173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];

/// A measured shape: rows of the tables, columns, lookups per bag, bags.
struct Shape(Vec<u64>, u64, u64, u64);

fn default() -> Shape {
    Shape(vec![1_000_000; 8], 64, 10, 2048)
}

fn ddp() -> Shape {
    Shape(vec![80_000; 8], 128, 20, 2048)
}

fn kaggle() -> Shape {
    Shape(CRITEO.to_vec(), 128, 1, 8192)
}

fn large() -> Shape {
    Shape(vec![1_000_000; 16], 128, 32, 8192)
}

fn small() -> Shape {
    Shape(vec![1000; 4], 32, 5, 512)
}

fn wide() -> Shape {
    Shape(vec![1_000_000; 4], 512, 10, 8192)
}

fn narrow(rows: u64, dim: u64) -> Shape {
    Shape(vec![rows; 4], dim, 32, 32_768)
}

/// A call with indices of 8 bytes.
fn bags(Shape(rows, dim, length, batch): &Shape, bits: u64, update: Option<RowOptimizer>) -> KernelCall {
    let lookups = rows.len() as u64 * length * batch;
    let row_bytes = dim * bits / 8 + if bits <= 8 { 4 } else { 0 };
    let table = |&rows: &u64| FusedTable { rows, dim: *dim, row_bytes, lookups: length * batch };
    let tables: Arc<[FusedTable]> = rows.iter().map(table).collect();
    let bag_bytes = 4 * batch * dim * rows.len() as u64;
    let kernel = Kernel::FusedBags(FusedBags {
        update,
        tables: tables.clone(),
        bags: *batch,
        lookups,
        pooling: Pooling::Sum,
        weighted: false,
        element_bits: bits,
        index_bytes: 8,
    });
    let role = if update.is_some() { Role::Update } else { Role::Read };
    let list = u16::from(update.is_some());
    let mut call = call(kernel, &[], &[], 0);
    for (at, table) in (0..).zip(tables.iter()) {
        let bytes = (length * batch).min(table.rows) * row_bytes;
        call.operands.push(Operand { slot: Slot::Input(list, at), role, bytes });
    }
    let others = [
        (Slot::Input(list + 1, 0), Role::Read, 8 * lookups),
        (Slot::Input(list + 2, 0), Role::Read, 8 * batch * rows.len() as u64),
        match update {
            None => (Slot::Output(0, 0), Role::Write, bag_bytes),
            Some(_) => (Slot::Input(0, 0), Role::Read, bag_bytes),
        },
    ];
    call.operands.extend(others.map(|(slot, role, bytes)| Operand { slot, role, bytes }));
    call
}

fn price(call: &KernelCall, indices: Indices) -> f64 {
    Fused.analytic(call, &Context::cold(call).with_indices(indices), &shipped("h200"))
}

#[test]
fn forward_passes_on_an_h200() {
    let measured = [
        (default(), 32, 11.3),
        (ddp(), 32, 37.7),
        (kaggle(), 32, 46.0),
        (large(), 32, 493.2),
        (small(), 32, 2.4),
        (wide(), 32, 170.6),
        (narrow(16_000_000, 8), 32, 121.7),
        (narrow(8_000_000, 16), 32, 117.2),
        (narrow(4_000_000, 32), 32, 138.8),
        (large(), 16, 251.8),
        (large(), 8, 205.2),
        (large(), 4, 163.6),
    ];
    for (shape, bits, measured) in measured {
        near(price(&bags(&shape, bits, None), Indices::Uniform), measured, 0.25);
    }
    for (power, measured) in [(1.05, 312.8), (1.2, 144.3)] {
        near(price(&bags(&large(), 32, None), Indices::FoldedZipf(power)), measured, 0.25);
    }
}

#[test]
fn backward_passes_with_every_optimizer_on_an_h200() {
    use RowOptimizer::{Adagrad, Adam, PartialRowWiseAdam, RowWiseAdagrad, Sgd};
    let optimizers = [Sgd, RowWiseAdagrad, Adagrad, Adam, PartialRowWiseAdam];
    let uniform = || Indices::Uniform;
    let measured = [
        (default(), uniform(), [46.1, 60.9, 78.2, 103.8, 102.7]),
        (ddp(), uniform(), [102.8, 117.0, 176.5, 253.4, 210.4]),
        (kaggle(), uniform(), [97.2, 112.8, 131.8, 170.4, 149.7]),
        (large(), uniform(), [1122.9, 1287.4, 2101.1, 3088.0, 2635.9]),
        (large(), Indices::FoldedZipf(1.05), [800.9, 971.9, 1411.7, 2030.1, 1770.5]),
        (large(), Indices::FoldedZipf(1.2), [407.9, 510.1, 583.6, 759.2, 694.4]),
        (small(), uniform(), [15.1, 17.3, 18.3, 21.4, 19.6]),
        (wide(), uniform(), [452.9, 460.4, 781.9, 1129.6, 837.9]),
    ];
    for (shape, indices, times) in measured {
        for (optimizer, measured) in optimizers.into_iter().zip(times) {
            near(price(&bags(&shape, 32, Some(optimizer)), indices.clone()), measured, 0.30);
        }
    }
}

#[test]
fn tables_of_other_sizes_count_as_themselves() {
    let time = |rows: Vec<u64>| price(&bags(&Shape(rows, 128, 20, 2048), 32, None), Indices::Uniform);
    let (few, many) = (time(vec![100; 8]), time(vec![5_000_000; 8]));
    let mixed = time([vec![100; 4], vec![5_000_000; 4]].concat());
    assert!(few < 0.7 * mixed && mixed < 0.8 * many, "{few} {mixed} {many}");
}
