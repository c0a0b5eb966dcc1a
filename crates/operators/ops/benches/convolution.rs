//! Forward and gradients of convolutions of ResNet-50, a grouped and a depthwise one, at eight images.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use steptime_ops::convolution::{Convolution, Layout, Sizes};
use steptime_ops::{Cpu, Isa};

fn bench(criterion: &mut Criterion) {
    for (inputs, outputs, image, kernel, stride, groups) in [
        (3, 64, 224, 7, 2, 1),
        (64, 256, 56, 1, 1, 1),
        (64, 64, 56, 3, 1, 1),
        (512, 512, 7, 3, 1, 1),
        (128, 128, 56, 3, 1, 32),
        (144, 144, 56, 3, 1, 144),
    ] {
        for layout in [Layout::ChannelsFirst, Layout::ChannelsLast] {
            let of = Convolution::new(Sizes {
                samples: 8,
                inputs,
                outputs,
                image: [image; 2],
                kernel: [kernel; 2],
                stride: [stride; 2],
                padding: [kernel / 2; 2],
                groups,
                layout,
                ..Sizes::default()
            })
            .unwrap();
            let floats = |len: usize| -> Vec<f32> {
                (0..len).map(|at| ((at * 7919) % 1009) as f32 / 1009.0 - 0.5).collect()
            };
            let (x, weight, dy) = (floats(of.input_len()), floats(of.weight_len()), floats(of.output_len()));
            let (mut y, mut dx, mut dweight) = (dy.clone(), x.clone(), weight.clone());
            let name = format!(
                "convolution {kernel}x{kernel}/{stride} {inputs}-{outputs} {image} {groups} {layout:?}"
            );
            let mut group = criterion.benchmark_group(name);
            group.sample_size(10).throughput(Throughput::Elements(of.flops()));
            for threads in [1, 2] {
                let cpu = Cpu::with_isa(Isa::best(), threads).unwrap();
                group.bench_function(format!("forward {threads}"), |bencher| {
                    bencher.iter(|| of.forward(&cpu, black_box(&x), &weight, None, &mut y).unwrap());
                });
                group.bench_function(format!("input gradient {threads}"), |bencher| {
                    bencher.iter(|| of.input_gradient(&cpu, black_box(&dy), &weight, &mut dx).unwrap());
                });
                group.bench_function(format!("weight gradient {threads}"), |bencher| {
                    bencher.iter(|| of.weight_gradient(&cpu, black_box(&x), &dy, &mut dweight).unwrap());
                });
            }
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
