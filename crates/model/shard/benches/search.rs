//! Search and bound, for 1,000 tables on 64 GPUs.

use criterion::{Criterion, criterion_group, criterion_main};
use steptime_shard::{Cut, Load, Problem, Table, Way, bound, search};
use steptime_trace::{Bytes, Nanos};

/// Tables with loads over three orders of magnitude; the large ones may be cut into columns.
fn problem() -> Problem {
    let mut state = 5_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    let table = |_| {
        let (device, memory) = (1e3 * 1000_f64.powf(random()), 1e6 * 10_000_f64.powf(random()));
        let load = |parts: f64| Load {
            host: Nanos(100_000),
            device: Nanos((device / parts.powf(0.8)) as i64),
            memory: Bytes((memory / parts) as u64),
            columns: (64.0 / parts) as u64,
            ..Load::default()
        };
        let cut = |parts: u32| Way {
            cut: Cut::Columns(parts),
            cached: None,
            parts: vec![load(f64::from(parts)); parts as usize],
            each: Load::default(),
        };
        Table { ways: [Way::whole(load(1.0)), cut(2), cut(4)].into() }
    };
    Problem {
        gpus: 64,
        node: 8,
        memory: Bytes(120 << 30),
        host_memory: Bytes(0),
        base: Load { host: Nanos(2_000_000), device: Nanos(1_000_000), ..Load::default() },
        exchange: Nanos(100),
        tables: (0..1000).map(table).collect(),
    }
}

fn benches(criterion: &mut Criterion) {
    let problem = problem();
    let mut group = criterion.benchmark_group("1000 tables on 64 GPUs");
    group.sample_size(10);
    group.bench_function("search", |bencher| bencher.iter(|| search(&problem)));
    group.bench_function("bound", |bencher| bencher.iter(|| bound(&problem)));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
