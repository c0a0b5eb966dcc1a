//! The layers of the MLPs of the three DLRMs, forward and all gradients. Throughput is floating-point operations.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::Cpu;
use steptime_ops::gemm::{
    Activation, Gradients, MatMut, MatRef, PackedMatrix, linear, linear_backward, linear_packed,
};

/// (inputs, outputs) of the layers of all three, each shape once.
const LAYERS: [(usize, usize); 15] = [
    (13, 512),
    (512, 512),
    (512, 256),
    (512, 64),
    (256, 128),
    (128, 128),
    (100, 1024),
    (164, 512),
    (479, 1024),
    (1024, 1024),
    (1024, 512),
    (1024, 1),
    (256, 1),
    (64, 16),
    (367, 512),
];

fn values(len: usize, scale: f32) -> Vec<f32> {
    (0..len).map(|at| (((at * 7919) % 1009) as f32 / 1009.0 - 0.5) * scale).collect()
}

fn bench(criterion: &mut Criterion) {
    for (inputs, outputs) in LAYERS {
        for batch in [128, 2048] {
            let (x, dy) = (values(batch * inputs, 1.0), values(batch * outputs, 1.0));
            let (weight, bias) = (values(outputs * inputs, 0.1), values(outputs, 0.1));
            let x = MatRef::new(&x, batch, inputs).unwrap();
            let dy = MatRef::new(&dy, batch, outputs).unwrap();
            let weight = MatRef::new(&weight, outputs, inputs).unwrap();
            let activation = if outputs == 1 { Activation::Sigmoid } else { Activation::Relu };
            let mut y = vec![0.0; batch * outputs];
            let mut group = criterion.benchmark_group(format!("linear {batch}x{inputs}->{outputs}"));
            group.sample_size(20);
            for threads in [1, 2] {
                let cpu = Cpu::new(threads).unwrap();
                let once = (2 * batch * inputs * outputs) as u64;
                group.throughput(Throughput::Elements(once));
                group.bench_function(format!("forward {threads}"), |bencher| {
                    bencher.iter(|| {
                        let y = MatMut::new(&mut y, batch, outputs).unwrap();
                        linear(&cpu, black_box(x), weight, Some(&bias), activation, y).unwrap();
                    });
                });
                let packed = PackedMatrix::new(&cpu, weight.t());
                group.bench_function(format!("forward, weight packed before {threads}"), |bencher| {
                    bencher.iter(|| {
                        let y = MatMut::new(&mut y, batch, outputs).unwrap();
                        linear_packed(&cpu, black_box(x), &packed, Some(&bias), activation, y).unwrap();
                    });
                });
                let (mut dx, mut dw) = (vec![0.0; batch * inputs], vec![0.0; outputs * inputs]);
                let mut db = vec![0.0; outputs];
                group.throughput(Throughput::Elements(2 * once));
                group.bench_function(format!("gradients {threads}"), |bencher| {
                    bencher.iter(|| {
                        let gradients = Gradients {
                            x: Some(MatMut::new(&mut dx, batch, inputs).unwrap()),
                            weight: Some(MatMut::new(&mut dw, outputs, inputs).unwrap()),
                            bias: Some(&mut db),
                        };
                        let y = MatRef::new(&y, batch, outputs).unwrap();
                        linear_backward(&cpu, black_box(dy), y, x, weight, activation, gradients).unwrap();
                    });
                });
            }
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
