//! Forward and backward of the dot interaction at the sizes of DLRM, with the share of this machine's limits for an
//! unshared core: throughput is the required floating-point operations.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::interaction::{Features, FeaturesMut, Interaction};
use steptime_ops::{Cpu, Isa};
use steptime_tensor::Tensor;

fn bench(criterion: &mut Criterion) {
    for (samples, features, dim) in [(2048, 27, 128), (2048, 27, 16), (2048, 9, 64), (128, 27, 128)] {
        let of = Interaction::new(features, dim, false).unwrap();
        let value = |at: usize| ((at * 7919) % 1009) as f32 / 1009.0 - 0.5;
        let inputs = Tensor::from_fn(&[samples, features, dim], value).unwrap();
        let gradient = Tensor::from_fn(&[samples, of.columns()], value).unwrap();
        let inputs = Features::Stacked(inputs.view());
        let mut out = Tensor::<f32>::zeros(&[samples, of.columns()]).unwrap();
        let mut grads = Tensor::<f32>::zeros(&[samples, features, dim]).unwrap();
        let mut group = criterion.benchmark_group(format!("interaction {samples}x{features}x{dim}"));
        group.sample_size(20);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for threads in [1, 2] {
                let cpu = Cpu::with_isa(isa, threads).unwrap();
                group.throughput(Throughput::ElementsAndBytes {
                    elements: of.forward_flops(samples),
                    bytes: of.forward_bytes(samples),
                });
                group.bench_function(format!("forward {isa} {threads}"), |bencher| {
                    bencher.iter(|| of.forward(&cpu, black_box(&inputs), out.make_mut()).unwrap());
                });
                group.throughput(Throughput::ElementsAndBytes {
                    elements: of.backward_flops(samples),
                    bytes: of.backward_bytes(samples),
                });
                group.bench_function(format!("backward {isa} {threads}"), |bencher| {
                    bencher.iter(|| {
                        let grads = FeaturesMut::Stacked(grads.make_mut());
                        of.backward(&cpu, black_box(&inputs), &gradient.view(), grads).unwrap();
                    });
                });
            }
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
