//! Chains of elementwise operations: fused in one pass, and one operation after the other as in a framework. Throughput
//! is bytes that must move, to compare with memory bandwidth, and operations.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::elementwise::{Expr, Input, Program};
use steptime_ops::{Cpu, Isa};
use steptime_tensor::Tensor;

fn bench(criterion: &mut Criterion) {
    let (x, bias) = (Expr::input(0), Expr::input(1));
    let chain = (x + bias).gelu() * 0.5;
    let fused = Program::new(&[chain]).unwrap();
    let alone = [
        Program::new(&[Expr::input(0) + Expr::input(1)]).unwrap(),
        Program::new(&[Expr::input(0).gelu()]).unwrap(),
        Program::new(&[Expr::input(0) * 0.5]).unwrap(),
    ];
    for (rows, columns) in [(128, 1024), (2048, 1024), (8192, 4096)] {
        let value = |at: usize| ((at * 7919) % 1009) as f32 / 1009.0 - 0.5;
        let x = Tensor::from_fn(&[rows, columns], value).unwrap();
        let bias = Tensor::from_fn(&[columns], value).unwrap();
        let mut out = Tensor::<f32>::zeros(&[rows, columns]).unwrap();
        let cost = fused.cost(rows * columns, &[rows * columns, columns]);
        let mut group = criterion.benchmark_group(format!("elementwise {rows}x{columns}"));
        group.sample_size(20);
        group.throughput(Throughput::ElementsAndBytes { elements: cost.flops, bytes: cost.fused_bytes });
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for threads in [1, 2] {
                let cpu = Cpu::with_isa(isa, threads).unwrap();
                let inputs = [Input::View(x.view()), Input::View(bias.view())];
                group.bench_function(format!("fused {isa} {threads}"), |bencher| {
                    bencher.iter(|| fused.run(&cpu, black_box(&inputs), &mut [out.make_mut()]).unwrap());
                });
                group.bench_function(format!("one by one {isa} {threads}"), |bencher| {
                    bencher.iter(|| {
                        alone[0].run(&cpu, black_box(&inputs), &mut [out.make_mut()]).unwrap();
                        for program in &alone[1..] {
                            program.run(&cpu, &[Input::InPlace(0)], &mut [out.make_mut()]).unwrap();
                        }
                    });
                });
            }
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
