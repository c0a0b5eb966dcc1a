//! Forward passes of embedding bags: fresh random indices in every call, tables far larger than the last-level cache
//! and tables that fit it. Throughput counts the bytes that must move: rows, indices, offsets and output.
//!
//! Before a group of tables in memory, the share of this machine's limit for rows of that size is printed: limit and op
//! measured in turn, the best of both.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::embedding::{
    Bounds, Element, HugeBuffer, Lookups, Order, Pooling, Scale, Table, Tables, forward, gather,
};
use steptime_ops::{Cpu, limits};

const TABLES: usize = 8;
const BAGS: usize = 2048;
const THREADS: usize = 2;

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn indices(&mut self, count: usize, rows: usize) -> Vec<i64> {
        let one = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % rows as u64) as i64
        };
        (0..count).map(one).collect()
    }
}

/// Tables with all pages mapped.
fn tables(count: usize, rows: usize, dim: usize, element: Element) -> Tables<'static> {
    let values: Vec<f32> = (0..dim).map(|at| (at as f32 * 0.7).sin()).collect();
    let one = |_| {
        let mut table = Table::zeros("table", [rows, dim], element).unwrap();
        (0..rows).for_each(|row| assert!(table.write_row(row, &values)));
        table
    };
    Tables::new((0..count).map(one).collect(), Pooling::Sum)
}

/// One shape of a forward pass.
struct Case {
    tables: Tables<'static>,
    lookups: usize,
    offsets: Vec<i64>,
    out: HugeBuffer,
    random: Random,
}

impl Case {
    fn new(rows: usize, dim: usize, element: Element) -> Case {
        let tables = tables(TABLES, rows, dim, element);
        let out = HugeBuffer::zeros_of::<f32>(BAGS * tables.columns()).unwrap();
        Case { tables, lookups: 0, offsets: Vec::new(), out, random: Random(7) }
    }

    fn with_lookups(&mut self, lookups: usize) -> &mut Case {
        self.lookups = lookups;
        self.offsets = (0..=TABLES * BAGS).map(|bag| (bag * lookups) as i64).collect();
        self
    }

    fn bytes(&self) -> usize {
        let rows = TABLES * BAGS * self.lookups * (self.tables.table(0).row_bytes() + 8);
        rows + self.offsets.len() * 8 + BAGS * self.tables.columns() * 4
    }

    fn fresh(&mut self) -> Vec<i64> {
        self.random.indices(TABLES * BAGS * self.lookups, self.tables.table(0).rows())
    }

    fn run(&mut self, cpu: &Cpu, indices: &[i64]) {
        let lookups = Lookups::new(BAGS, indices, &self.offsets).unwrap();
        let stride = self.tables.columns();
        forward(cpu, &self.tables, &lookups, Bounds::Error, black_box(self.out.as_mut_slice()), stride)
            .unwrap();
    }

    /// Prints the share of the limit for random rows in memory of the same size.
    fn share(&mut self, cpu: &Cpu) {
        let (mut limit, mut best) = (0.0_f64, f64::INFINITY);
        // Whole cache lines move; a short row may touch two.
        let lines = self.tables.table(0).row_bytes().div_ceil(64);
        let (row, pitch) = (64 * lines, self.tables.table(0).pitch());
        let working_set = TABLES * self.tables.table(0).rows() * pitch;
        let padding = TABLES * BAGS * self.lookups * (row - self.tables.table(0).row_bytes());
        let bytes = (self.bytes() + padding) as f64;
        for _ in 0..3 {
            limit = limit.max(limits::random_rows(cpu, row, working_set, 3).unwrap().per_second);
            for _ in 0..7 {
                let indices = self.fresh();
                let start = Instant::now();
                self.run(cpu, &indices);
                best = best.min(start.elapsed().as_secs_f64());
            }
        }
        let rows = (TABLES * BAGS * self.lookups * row) as f64;
        println!(
            "{} x {}, L = {}: {:.3} ms, {:.1} GB/s of {:.1}: {:.0} % of the limit, rows alone {:.0} %",
            self.tables.table(0).element(),
            self.tables.table(0).dim(),
            self.lookups,
            best * 1e3,
            bytes / best / 1e9,
            limit / 1e9,
            100.0 * bytes / best / limit,
            100.0 * rows / best / limit,
        );
    }

    fn bench(&mut self, criterion: &mut Criterion, name: &str, cpu: &Cpu) {
        let mut group = criterion.benchmark_group(format!("bag {name}"));
        group
            .sample_size(20)
            .measurement_time(Duration::from_secs(2))
            .warm_up_time(Duration::from_millis(300));
        group.throughput(Throughput::Bytes(self.bytes() as u64));
        let (dim, lookups) = (self.tables.table(0).dim(), self.lookups);
        group.bench_function(format!("D = {dim}, L = {lookups}"), |bencher| {
            bencher.iter_custom(|count| {
                let one = |_| {
                    let indices = self.fresh();
                    let start = Instant::now();
                    self.run(cpu, &indices);
                    start.elapsed()
                };
                (0..count).map(one).sum()
            });
        });
    }
}

/// Tables in memory: f32 of every width, and integers.
fn memory(criterion: &mut Criterion) {
    let cpu = Cpu::new(THREADS).unwrap();
    for dim in [16, 32, 64, 128, 256] {
        let mut case = Case::new(1_000_000.min(64_000_000 / dim), dim, Element::F32);
        for lookups in [10, 20, 30] {
            case.with_lookups(lookups).share(&cpu);
            case.bench(criterion, "f32 in memory", &cpu);
        }
    }
    for (name, element) in
        [("int8 in memory", Element::Int8(Scale::F16)), ("int4 in memory", Element::Int4(Scale::F16))]
    {
        for dim in [32, 64, 128, 256] {
            let mut case = Case::new(1_000_000, dim, element);
            case.with_lookups(20).share(&cpu);
            case.bench(criterion, name, &cpu);
        }
    }
}

/// Tables that fit the caches.
fn small(criterion: &mut Criterion) {
    let cpu = Cpu::new(THREADS).unwrap();
    for (name, element) in [
        ("f32 in caches", Element::F32),
        ("int8 in caches", Element::Int8(Scale::F16)),
        ("int4 in caches", Element::Int4(Scale::F16)),
    ] {
        for dim in [16, 64, 128] {
            Case::new(1000, dim, element).with_lookups(20).bench(criterion, name, &cpu);
        }
    }
}

/// Gathers of wide rows, row after row and by column slices.
fn orders(criterion: &mut Criterion) {
    let cpu = Cpu::new(THREADS).unwrap();
    let (rows, dim) = (8192, 4096);
    let table = tables(1, rows, dim, Element::F32);
    let table = table.table(0);
    let mut random = Random(7);
    for lookups in [16_384, 65_536] {
        let mut out = HugeBuffer::zeros_of::<f32>(lookups * dim).unwrap();
        let mut group = criterion.benchmark_group(format!("gather of {lookups} rows, 8192 x 4096"));
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(2))
            .warm_up_time(Duration::from_millis(300));
        group.throughput(Throughput::Bytes((lookups * (dim * 8 + 8)) as u64));
        for order in [Order::Auto, Order::Rows, Order::Columns(512), Order::Columns(1024)] {
            group.bench_function(format!("{order:?}"), |bencher| {
                bencher.iter_batched(
                    || random.indices(lookups, rows),
                    |indices| {
                        gather(
                            &cpu,
                            table,
                            &indices,
                            Bounds::Error,
                            order,
                            black_box(out.as_mut_slice()),
                            dim,
                        )
                        .unwrap()
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
}

criterion_group!(benches, memory, small, orders);
criterion_main!(benches);
