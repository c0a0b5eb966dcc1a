//! Products of another type than their factors, against double precision. Without a GPU or cuBLASLt tests are skipped,
//! and counted.

use crate::gemm::{gpu, values};

use half::bf16;
use steptime_cuda::gemm::{Blas, Epilogue, Factor, Gemm, Math, Shape};
use steptime_cuda::{Buffer, Error, Stream};
use steptime_ops::gemm::Activation;

/// The largest error of a product of 16-bit matrices, relative to the largest value.
fn error<D: Factor, B: Factor>(
    (stream, blas): &(Stream, Blas),
    (shape, activation): (Shape, Activation),
    to_bias: impl Fn(f32) -> B,
    from_result: impl Fn(D) -> f32,
) -> Result<f64, Error> {
    let Shape { m, n, k, .. } = shape;
    let (a, b, bias) = (values(m * k, 1), values(k * n, 2), values(n, 3));
    let mut product = Gemm::<bf16, D, B>::new(blas, shape, Math::Full, Epilogue { bias: true, activation })?;
    let upload = |values: &[f32]| {
        let rounded: Vec<_> = values.iter().map(|&value| bf16::from_f32(value)).collect();
        Buffer::from_host(stream, &rounded).unwrap()
    };
    let of_bias: Vec<_> = bias.iter().map(|&value| to_bias(value)).collect();
    let (left, right) = (upload(&a), upload(&b));
    let of_bias = Buffer::from_host(stream, &of_bias).unwrap();
    let mut out = Buffer::<D>::zeros(stream, m * n).unwrap();
    let [left, right] = [left.as_ref(), right.as_ref()];
    product.run(stream, (1.0, 0.0), left, right, &mut out.as_mut(), Some(of_bias.as_ref()))?;
    let (mut wrong, mut largest) = (0.0_f64, 0.0_f64);
    for (at, found) in out.to_host(stream).unwrap().into_iter().enumerate() {
        let (row, column) = (at / n, at % n);
        let of_a = |l: usize| if shape.a_transposed { a[l * m + row] } else { a[row * k + l] };
        let of_b = |l: usize| if shape.b_transposed { b[column * k + l] } else { b[l * n + column] };
        let sum: f64 = (0..k).map(|l| f64::from(of_a(l)) * f64::from(of_b(l))).sum();
        let expected = sum + f64::from(bias[column]);
        let expected = if activation == Activation::Relu { expected.max(0.0) } else { expected };
        wrong = wrong.max((f64::from(from_result(found)) - expected).abs());
        largest = largest.max(expected.abs());
    }
    Ok(wrong / largest)
}

#[test]
fn products_of_16_bit_factors_are_stored_in_32_bits() {
    let Some(gpu) = gpu() else { return };
    for sizes in [[64, 128, 256], [1, 512, 480], [304, 8, 64], [512, 48, 4096]] {
        for turn in 0..4 {
            let shape = Shape::new(sizes, turn & 1 == 1, turn & 2 == 2);
            // cuBLASLt multiplies 16-bit matrices whose rows begin at whole words.
            if shape.strides.iter().any(|stride| stride % 8 > 0) {
                continue;
            }
            for activation in [Activation::Identity, Activation::Relu] {
                let same = |value: f32| value;
                let error = error(&gpu, (shape, activation), same, same).unwrap();
                println!("{shape:?} {activation:?}: {error:.1e}");
                // Factors have 8 bits, so that only sums are rounded.
                assert!(error < 1e-6, "{shape:?} {error}");
            }
        }
    }
}

/// cuBLASLt documents a bias of the product's type; an algorithm for another one is right, or there is none.
#[test]
fn a_32_bit_bias_of_a_16_bit_product_is_added_or_refused() {
    let Some(gpu) = gpu() else { return };
    let shape = Shape::new([64, 128, 256], false, true);
    for activation in [Activation::Identity, Activation::Relu] {
        match error(&gpu, (shape, activation), |value| value, bf16::to_f32) {
            Ok(error) => {
                println!("{activation:?}: added, {error:.1e}");
                assert!(error < 8e-3, "{error}");
            }
            Err(refused) => {
                println!("{activation:?}: {refused}");
                assert!(refused.to_string().contains("bf16 to bf16 and a bias of f32"), "{refused}");
            }
        }
    }
}
