//! Transposes, concatenation, and the plain copy, in caches and in memory. Throughput is bytes read and written.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::rearrange::{concat, copy};
use steptime_ops::{Cpu, Isa};
use steptime_tensor::Tensor;

fn bench(criterion: &mut Criterion) {
    for (rows, columns) in [(500, 500), (1000, 1000), (2048, 2048), (8192, 4000)] {
        let value = |at: usize| at as f32;
        let from = Tensor::from_fn(&[rows, columns], value).unwrap();
        let transposed = from.view().transpose(0, 1).unwrap();
        let mut to = Tensor::<f32>::zeros(&[columns, rows]).unwrap();
        let mut joined = Tensor::<f32>::zeros(&[rows, 2 * columns]).unwrap();
        let mut group = criterion.benchmark_group(format!("rearrange {rows}x{columns}"));
        group.sample_size(20);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for threads in [1, 2] {
                let cpu = Cpu::with_isa(isa, threads).unwrap();
                group.throughput(Throughput::Bytes(8 * (rows * columns) as u64));
                group.bench_function(format!("transpose {isa} {threads}"), |bencher| {
                    bencher.iter(|| copy(&cpu, black_box(&transposed), to.make_mut()).unwrap());
                });
                group.throughput(Throughput::Bytes(16 * (rows * columns) as u64));
                group.bench_function(format!("concat {isa} {threads}"), |bencher| {
                    let parts = [from.view(), from.view()];
                    bencher.iter(|| concat(&cpu, black_box(&parts), 1, joined.make_mut()).unwrap());
                });
            }
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
