//! Our own matrix products against sums in double precision. Without a GPU tests are skipped, and counted.

use crate::support;

use half::bf16;
use steptime_cuda::product::{Number, Product, Rung};
use steptime_cuda::{Buffer, Error, Stream};

fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / f32::from(1_u16 << 15) / 256.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Runs a product twice, for the same bits, into results that start as NaN. Returns its error, relative to the length
/// of the vector of the terms.
fn error<T: Number + PartialEq>(
    stream: &Stream,
    [m, n, k]: [usize; 3],
    rung: Rung,
    of: impl Fn(f32) -> T,
    to: impl Fn(T) -> f64,
) -> f64 {
    let (a, b): (Vec<T>, Vec<T>) =
        (values(m * k, 1).into_iter().map(&of).collect(), values(n * k, 2).into_iter().map(&of).collect());
    let product = Product::<T>::new(stream.device(), [m, n, k], rung).unwrap();
    let (left, right) = (Buffer::from_host(stream, &a).unwrap(), Buffer::from_host(stream, &b).unwrap());
    let nothing: Vec<T> = (0..m * n).map(|_| of(f32::NAN)).collect();
    let multiply = || {
        let mut c = Buffer::from_host(stream, &nothing).unwrap();
        product.run(stream, left.as_ref(), right.as_ref(), &mut c.as_mut()).unwrap();
        c.to_host(stream).unwrap()
    };
    let found = multiply();
    assert!(found == multiply(), "{rung} gives other bits in another run");
    let mut largest = 0.0_f64;
    for row in 0..m {
        for column in 0..n {
            let terms = (0..k).map(|at| to(a[row * k + at]) * to(b[column * k + at]));
            let (sum, squares) =
                terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
            let off = (to(found[row * n + column]) - sum).abs() / squares.sqrt();
            assert!(off.is_finite(), "{rung}: row {row}, column {column} was not written");
            largest = largest.max(off);
        }
    }
    largest
}

#[test]
fn every_rung_multiplies_awkward_sizes() {
    let Some(device) = support::device() else { return };
    let stream = device.stream().unwrap();
    for sizes in [[1, 1, 8], [129, 72, 1000], [200, 333, 136], [257, 520, 64]] {
        for rung in Rung::ALL {
            let (f32s, bf16s) = match Product::<f32>::new(&device, sizes, rung) {
                Err(Error::Unsupported { what, .. }) => {
                    steptime_skips::skip(&what);
                    continue;
                }
                _ => (
                    error(&stream, sizes, rung, |value| value, f64::from),
                    error(&stream, sizes, rung, bf16::from_f32, f64::from),
                ),
            };
            let most = if rung.cuts() { 4e-3 } else { 2e-5 };
            assert!(f32s < most, "{rung} {sizes:?}: {f32s}");
            assert!(bf16s < 5e-2, "{rung} {sizes:?}: {bf16s}");
        }
    }
}

#[test]
fn what_a_rung_does_not_take_is_refused() {
    let Some(device) = support::device() else { return };
    let stream = device.stream().unwrap();
    assert!(Product::<f32>::new(&device, [4, 4, 0], Rung::Tiles).is_err());
    let odd = Product::<bf16>::new(&device, [4, 4, 7], Rung::Mma).unwrap_err().to_string();
    assert!(odd.contains("16 bytes"), "{odd}");
    let product = Product::<f32>::new(&device, [4, 4, 4], Rung::Threads).unwrap();
    let short = Buffer::<f32>::zeros(&stream, 15).unwrap();
    let whole = Buffer::<f32>::zeros(&stream, 16).unwrap();
    let mut c = Buffer::<f32>::zeros(&stream, 16).unwrap();
    let error = product.run(&stream, whole.as_ref(), short.as_ref(), &mut c.as_mut()).unwrap_err();
    assert!(error.to_string().contains('B'), "{error}");
}
