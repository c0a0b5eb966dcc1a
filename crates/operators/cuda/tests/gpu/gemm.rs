//! Matrix products on a GPU against those of the CPU. Without a GPU or cuBLASLt tests are skipped, and counted.

use crate::support;

use half::{bf16, f16};
use steptime_cuda::gemm::{Blas, Epilogue, Factor, Gemm, Math, Shape};
use steptime_cuda::{Buffer, Error, Stream};
use steptime_ops::Cpu;
use steptime_ops::gemm::{Activation, MatMut, MatRef, gemm};

pub fn gpu() -> Option<(Stream, Blas)> {
    let device = support::device()?;
    let blas = match Blas::open(&device) {
        Err(Error::NoBlas) => {
            steptime_skips::skip("no cuBLASLt");
            return None;
        }
        opened => opened.unwrap(),
    };
    Some((device.stream().unwrap(), blas))
}

/// A number that 16 bits hold, in -1..1.
pub fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) % 255) as f32 / 128.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Runs a product twice, for the same bits, and returns the largest error relative to the largest value.
fn error<T: Factor + PartialEq>(
    (stream, blas): &(Stream, Blas),
    (shape, math, epilogue): (Shape, Math, Epilogue),
    of: impl Fn(f32) -> T,
    to: impl Fn(T) -> f32,
) -> f32 {
    let Shape { m, n, k, a_transposed, b_transposed, strides, batch, batch_strides, alignment } = shape;
    let [sa, sb, sc] = strides;
    let (alpha, beta) = (0.5, if epilogue.bias { 0.0 } else { 2.0 });
    let length = |rows: usize, at: usize| (batch - 1) * batch_strides[at] + rows * strides[at];
    let a = values(length(if a_transposed { k } else { m }, 0), 1);
    let b = values(length(if b_transposed { n } else { k }, 1), 2);
    let c = values(length(m, 2), 3);
    let bias = values(n, 4);
    let mut expected = c.clone();
    let stored = |values, rows, cols, stride, turn: bool| {
        let (rows, cols) = if turn { (cols, rows) } else { (rows, cols) };
        let matrix = MatRef::with_strides(values, rows, cols, stride, 1).unwrap();
        if turn { matrix.t() } else { matrix }
    };
    let cpu = Cpu::new(2).unwrap();
    for sample in 0..batch {
        let [a, b] = [&a[sample * batch_strides[0]..], &b[sample * batch_strides[1]..]];
        let (left, right) = (stored(a, m, k, sa, a_transposed), stored(b, k, n, sb, b_transposed));
        let expected = &mut expected[sample * batch_strides[2]..];
        let result = MatMut::with_strides(expected, m, n, sc, 1).unwrap();
        gemm(&cpu, alpha, left, right, beta, result).unwrap();
        for row in 0..m {
            for (value, bias) in expected[row * sc..][..n].iter_mut().zip(&bias) {
                let sum = if epilogue.bias { *value + bias } else { *value };
                *value = epilogue.activation.value(sum);
            }
        }
    }
    // Matrices begin as far from multiples of 16 bytes as the alignment allows.
    let before = if alignment < 16 { alignment / size_of::<T>() } else { 0 };
    let upload = |values: &[f32]| {
        let before = std::iter::repeat_n(0.0, before);
        let values: Vec<T> = before.chain(values.iter().copied()).map(&of).collect();
        Buffer::from_host(stream, &values).unwrap()
    };
    let [a, b] = [upload(&a), upload(&b)];
    let bias = Buffer::from_host(stream, &bias.iter().map(|&value| of(value)).collect::<Vec<_>>()).unwrap();
    let mut product = Gemm::<T>::new(blas, shape, math, epilogue).unwrap();
    let mut run = || {
        let mut out = upload(&c);
        let bias = epilogue.bias.then(|| bias.as_ref());
        let [a, b] = [&a, &b].map(|whole| whole.as_ref().slice(before..whole.len()));
        let end = out.len();
        let mut whole = out.as_mut();
        product.run(stream, (alpha, beta), a, b, &mut whole.slice(before..end), bias).unwrap();
        out.to_host(stream).unwrap().split_off(before)
    };
    let found = run();
    assert!(found == run(), "two runs differ: {shape:?}");
    let largest = expected.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let wrong = found.into_iter().zip(&expected).map(|(found, expected)| (to(found) - expected).abs());
    wrong.fold(0.0, f32::max) / largest
}

#[test]
fn products_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for (m, n, k) in [(64, 128, 256), (33, 7, 100), (1, 512, 479), (300, 1, 64)] {
        for (turn, activation) in [
            (0, Activation::Identity),
            (1, Activation::Relu),
            (2, Activation::Relu),
            (3, Activation::Identity),
        ] {
            let shape = Shape::new([m, n, k], turn & 1 == 1, turn & 2 == 2);
            let [a, b, c] = shape.strides;
            // Padded rows, so that 16-bit elements begin at whole words, as cuBLASLt's kernels require.
            let pad = |stride: usize| stride.next_multiple_of(8) + 8;
            for (shape, bias) in [(shape, true), (shape.with_strides([pad(a), pad(b), pad(c)]), false)] {
                let epilogue = Epilogue { bias, activation };
                let same = |value: f32| value;
                let full = error(&gpu, (shape, Math::Full, epilogue), same, same);
                let tf32 = error(&gpu, (shape, Math::Tf32, epilogue), same, same);
                let b16 = error(&gpu, (shape, Math::Full, epilogue), bf16::from_f32, bf16::to_f32);
                let h16 = error(&gpu, (shape, Math::Full, epilogue), f16::from_f32, f16::to_f32);
                println!(
                    "{m} x {n} x {k} {turn} {epilogue:?}: f32 {full:.1e} tf32 {tf32:.1e} bf16 {b16:.1e} f16 {h16:.1e}"
                );
                // Values have 8 bits, so that only sums and outputs are rounded.
                assert!(full < 1e-6 && tf32 < 1e-6 && b16 < 8e-3 && h16 < 1e-3, "{shape:?}");
            }
        }
    }
}

#[test]
fn batches_and_matrices_at_any_address_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let same = |value: f32| value;
    for [m, n, k] in [[27, 27, 128], [33, 7, 100], [1, 64, 5], [64, 128, 256]] {
        for turn in 0..4 {
            let shape = Shape::new([m, n, k], turn & 1 == 1, turn & 2 == 2);
            let [a, b, c] = [m * k, k * n, m * n];
            // One after the other, one B for all, rows of all products between each other.
            let between = shape.with_strides([shape.strides[0], shape.strides[1], 9 * n]);
            for shape in [
                shape,
                shape.with_batch(9, [a, b, c]),
                shape.with_batch(9, [a + 5, 0, c + 3]),
                between.with_batch(9, [a, b, n]),
            ] {
                for bias in [false, true] {
                    let epilogue = Epilogue { bias, activation: Activation::Identity };
                    let aligned = error(&gpu, (shape, Math::Full, epilogue), same, same);
                    let any = error(&gpu, (shape.with_alignment(4), Math::Full, epilogue), same, same);
                    println!("{shape:?} {bias}: {aligned:.1e}, at any address {any:.1e}");
                    assert!(aligned < 1e-6 && any < 1e-6, "{shape:?}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some((stream, blas)) = gpu() else { return };
    let mut product =
        Gemm::<f32>::new(&blas, Shape::new([4, 8, 16], false, false), Math::Full, Epilogue::default())
            .unwrap();
    let a = Buffer::<f32>::zeros(&stream, 64).unwrap();
    let b = Buffer::<f32>::zeros(&stream, 132).unwrap();
    let mut c = Buffer::<f32>::zeros(&stream, 32).unwrap();
    let mut run = |a, b, bias| {
        product.run(&stream, (1.0, 0.0), a, b, &mut c.as_mut(), bias).map_err(|error| error.to_string())
    };
    assert!(run(a.as_ref(), b.as_ref(), None).is_ok());
    assert!(run(a.as_ref().slice(0..63), b.as_ref(), None).unwrap_err().contains("64 are needed"));
    assert!(run(a.as_ref(), b.as_ref().slice(1..132), None).unwrap_err().contains("16 bytes"));
    assert!(run(a.as_ref(), b.as_ref(), Some(a.as_ref())).unwrap_err().contains("bias"));
    let batch = Shape::new([4, 8, 16], false, false).with_batch(2, [0, 4, 32]).with_alignment(4);
    let mut product = Gemm::<f32>::new(&blas, batch, Math::Full, Epilogue::default()).unwrap();
    let mut c = Buffer::<f32>::zeros(&stream, 65).unwrap();
    let mut run = |b, from, to| {
        let (a, mut c) = (a.as_ref(), c.as_mut());
        product
            .run(&stream, (1.0, 0.0), a, b, &mut c.slice(from..to), None)
            .map_err(|error| error.to_string())
    };
    assert!(run(b.as_ref(), 1, 65).is_ok());
    assert!(run(b.as_ref().slice(1..132), 0, 64).unwrap_err().contains("132 are needed"));
    assert!(run(b.as_ref(), 0, 63).unwrap_err().contains("64 are needed"));
}
