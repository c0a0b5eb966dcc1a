//! Backward passes of embedding bags fused with their optimizer at the sizes of DLRM: grouping and step together, on
//! fresh random indices in every call. Throughput counts the bytes that must move: rows and state of the distinct
//! lookups in and out, gradients, indices and offsets.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::Cpu;
use steptime_ops::embedding::backward::{Gradient, RowOptimizer, RowRule};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Element, Lookups, Pooling, Table, Tables};

const BAGS: usize = 2048;
const THREADS: usize = 2;

/// Random indices, by xorshift.
fn indices(state: &mut u64, tables: usize, count: usize, rows: usize) -> Vec<i64> {
    let one = |_| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state % rows as u64) as i64
    };
    (0..tables * count).map(one).collect()
}

/// Tables with all pages mapped.
fn tables(count: usize, rows: usize, dim: usize) -> Tables<'static> {
    let values: Vec<f32> = (0..dim).map(|at| (at as f32 * 0.7).sin()).collect();
    let one = |_| {
        let mut table = Table::zeros("table", [rows, dim], Element::F32).unwrap();
        (0..rows).for_each(|row| assert!(table.write_row(row, &values)));
        table
    };
    Tables::new((0..count).map(one).collect(), Pooling::Sum)
}

fn bench(criterion: &mut Criterion) {
    let cpu = Cpu::new(THREADS).unwrap();
    let mut random = 7;
    for (name, count, rows, dim, each) in [
        ("DLRM default, L = 10", 8, 1_000_000, 64, 10),
        ("DLRM default, L = 30", 8, 1_000_000, 64, 30),
        ("DLRM DDP, L = 20", 8, 80_000, 128, 20),
        ("26 tables, L = 1", 26, 100_000, 128, 1),
    ] {
        let mut tables = tables(count, rows, dim);
        let columns = tables.columns();
        let gradient: Vec<f32> = (0..BAGS * columns).map(|at| (at % 1009) as f32 / 1009.0 - 0.5).collect();
        let gradient = Gradient::new(&gradient, columns);
        let offsets: Vec<i64> = (0..=count * BAGS).map(|bag| (bag * each) as i64).collect();
        let mut group = criterion.benchmark_group(format!("backward {name}"));
        group
            .sample_size(20)
            .measurement_time(Duration::from_secs(2))
            .warm_up_time(Duration::from_millis(300));
        for rule in [RowRule::SGD, RowRule::ROW_WISE_ADAGRAD, RowRule::ADAM] {
            let mut optimizer = RowOptimizer::new(rule, 0.01, &tables).unwrap();
            let mut grouping = Grouping::new();
            let sample = indices(&mut random, count, BAGS * each, rows);
            let distinct: usize =
                sample.chunks(BAGS * each).map(|one| one.iter().collect::<HashSet<_>>().len()).sum();
            let moved = 2 * distinct * (dim + rule.state_width(dim)) * 4
                + (BAGS * columns * 4 + sample.len() * 8 + offsets.len() * 8);
            group.throughput(Throughput::Bytes(moved as u64));
            group.bench_function(rule.name(), |bencher| {
                bencher.iter_custom(|calls| {
                    let one = |_| {
                        let indices = indices(&mut random, count, BAGS * each, rows);
                        let lookups = Lookups::new(BAGS, &indices, &offsets).unwrap();
                        let start = Instant::now();
                        grouping.group(&cpu, &tables, &lookups, Bounds::Error).unwrap();
                        let step =
                            optimizer.step(&cpu, &mut tables, &lookups, &grouping, Bounds::Error, &gradient);
                        step.unwrap();
                        start.elapsed()
                    };
                    (0..calls).map(one).sum::<Duration>()
                });
            });
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
