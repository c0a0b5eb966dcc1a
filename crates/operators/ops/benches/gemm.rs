//! The tiling ladder rung by rung, then the top rung at large and skinny shapes. Throughput is floating-point
//! operations, to compare with the peak of this machine, which is printed first.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::gemm::{
    MatMut, MatRef, Plan, gemm, gemm_cache, gemm_naive, gemm_register, gemm_vectorized,
};
use steptime_ops::limits::fma_peak;
use steptime_ops::{Cpu, Isa};

fn values(len: usize) -> Vec<f32> {
    (0..len).map(|at| ((at * 7919) % 1009) as f32 / 1009.0 - 0.5).collect()
}

fn flops(m: usize, n: usize, k: usize) -> Throughput {
    Throughput::Elements((2 * m * n * k) as u64)
}

fn ladder(criterion: &mut Criterion) {
    let cpu = Cpu::new(1).unwrap();
    for size in [256, 1024] {
        let (a, b, mut c) = (values(size * size), values(size * size), vec![0.0; size * size]);
        let (a, b) = (MatRef::new(&a, size, size).unwrap(), MatRef::new(&b, size, size).unwrap());
        let mut group = criterion.benchmark_group(format!("ladder {size}"));
        group.sample_size(10).throughput(flops(size, size, size));
        if size <= 256 {
            group.bench_function("naive", |bencher| {
                bencher.iter(|| {
                    gemm_naive(1.0, black_box(a), b, 0.0, MatMut::new(&mut c, size, size).unwrap()).unwrap();
                });
            });
        }
        for (name, rung) in [
            ("vectorized", gemm_vectorized as fn(&Cpu, MatRef<'_>, MatRef<'_>, MatMut<'_>) -> _),
            ("register", gemm_register),
            ("cache", gemm_cache),
        ] {
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    rung(&cpu, black_box(a), b, MatMut::new(&mut c, size, size).unwrap()).unwrap();
                });
            });
        }
        group.bench_function("packed", |bencher| {
            bencher.iter(|| {
                gemm(&cpu, 1.0, black_box(a), b, 0.0, MatMut::new(&mut c, size, size).unwrap()).unwrap();
            });
        });
    }
}

fn top(criterion: &mut Criterion) {
    for threads in [1, 2] {
        let cpu = Cpu::new(threads).unwrap();
        println!("{} x {threads}: at most {:.1} GFLOP/s", cpu.isa(), fma_peak(&cpu, 20).per_second / 1e9);
    }
    println!("{}", Plan::new(Isa::best(), 2048, 512, 512));
    let squares = [64, 256, 512, 1024, 2048].map(|size| (size, size, size));
    for (m, n, k) in squares.into_iter().chain([(2048, 512, 13), (2048, 64, 512), (16, 1024, 1024)]) {
        let (a, b, mut c) = (values(m * k), values(k * n), vec![0.0; m * n]);
        let (a, b) = (MatRef::new(&a, m, k).unwrap(), MatRef::new(&b, k, n).unwrap());
        let mut group = criterion.benchmark_group(format!("gemm {m}x{n}x{k}"));
        group.sample_size(20).throughput(flops(m, n, k));
        for isa in Isa::ALL.into_iter().filter(|&isa| isa.is_available() && isa != Isa::Scalar) {
            for threads in [1, 2] {
                let cpu = Cpu::with_isa(isa, threads).unwrap();
                group.bench_function(format!("{isa} {threads}"), |bencher| {
                    bencher.iter(|| {
                        gemm(&cpu, 1.0, black_box(a), b, 0.0, MatMut::new(&mut c, m, n).unwrap()).unwrap();
                    });
                });
            }
        }
    }
}

criterion_group!(benches, ladder, top);
criterion_main!(benches);
