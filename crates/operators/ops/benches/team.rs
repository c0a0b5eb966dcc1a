//! Time to begin and end a piece of work, alone and with another caller at the same time.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use steptime_ops::Cpu;
use steptime_ops::gemm::{MatMut, MatRef, gemm};

/// An empty round, also with as many parts as there are threads.
fn rounds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("team");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for threads in [2, 4, 8, 16].into_iter().filter(|&threads| threads <= cores) {
        let cpu = Cpu::new(threads).unwrap();
        group.bench_function(format!("nothing {threads}"), |bencher| {
            bencher.iter(|| {
                cpu.run(threads, |part| {
                    black_box(part);
                })
            });
        });
    }
    group.finish();
}

/// Two teams of all processors, each with the same products: in turn, and concurrently.
fn teams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("two teams");
    group.sample_size(10);
    let cpus = [Cpu::new(0).unwrap(), Cpu::new(0).unwrap()];
    for size in [256, 512] {
        let work = |cpu: &Cpu, count: u64| {
            let (a, b, mut c) = (vec![1.0; size * size], vec![1.0; size * size], vec![0.0; size * size]);
            for _ in 0..count {
                let (a, b) = (MatRef::new(&a, size, size).unwrap(), MatRef::new(&b, size, size).unwrap());
                gemm(cpu, 1.0, a, b, 0.0, MatMut::new(&mut c, size, size).unwrap()).unwrap();
            }
            black_box(&c);
        };
        group.bench_function(format!("in turn {size}"), |bencher| {
            bencher.iter_custom(|count| {
                let start = Instant::now();
                cpus.iter().for_each(|cpu| work(cpu, count));
                start.elapsed()
            });
        });
        group.bench_function(format!("at once {size}"), |bencher| {
            bencher.iter_custom(|count| {
                let start = Instant::now();
                thread::scope(|scope| {
                    for cpu in &cpus {
                        scope.spawn(|| work(cpu, count));
                    }
                });
                start.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, rounds, teams);
criterion_main!(benches);
