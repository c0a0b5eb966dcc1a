//! Matrix products through cuBLASLt.

use half::{bf16, f16};
use steptime_cuda::Buffer;
use steptime_cuda::gemm::{Blas, Epilogue, Factor, Gemm, Math, Shape};

use super::context::{Case, Context};
use super::{Benchmark, TOLERANCE};
use crate::Error;
use crate::difference::largest;
use crate::dlrm::BATCH;
use crate::random::{Random, values};
use crate::sizes::{Sizes, check_memory};

/// Number of elements of the product that are checked.
const CHECKED: usize = 2000;

/// Tolerance for factors or results with 8 to 11 bits.
pub(super) const COARSE: f64 = 1e-2;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "gemm",
    about: "Matrix products through cuBLASLt",
    sizes: "[M, K] times [K, N]",
    keys: &[("M", 1024), ("N", 1024), ("K", 1024)],
    run,
    usual,
};

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Error> {
    let [m, n, k] = ["M", "N", "K"].map(|key| sizes.get(key));
    let matrices: [&[usize]; 3] = [&[m, k], &[k, n], &[m, n]];
    check_memory(&matrices)?;
    context.check_memory(&matrices)?;
    all_types(context, "", [m, n, k])
}

/// Runs layers of DLRM, and a square that keeps the GPU busy.
fn usual(context: &mut Context) -> Result<(), Error> {
    all_types(context, "layer", [BATCH, 1024, 1024])?;
    all_types(context, "narrow layer", [BATCH, 64, 512])?;
    all_types(context, "square", [8192, 8192, 8192])
}

fn all_types(context: &mut Context, name: &str, sizes: [usize; 3]) -> Result<(), Error> {
    let blas = Blas::open(context.device())?;
    let f32 = |value: f32| value;
    case(context, &blas, &format!("{name} f32"), sizes, (Math::Full, TOLERANCE), f32)?;
    case(context, &blas, &format!("{name} tf32"), sizes, (Math::Tf32, COARSE), f32)?;
    case(context, &blas, &format!("{name} f16"), sizes, (Math::Full, COARSE), f16::from_f32)?;
    case(context, &blas, &format!("{name} bf16"), sizes, (Math::Full, COARSE), bf16::from_f32)
}

/// Weights are stored as in a linear layer.
fn case<T: Factor + Into<f64>>(
    context: &mut Context,
    blas: &Blas,
    name: &str,
    [m, n, k]: [usize; 3],
    (math, tolerance): (Math, f64),
    round: impl Fn(f32) -> T + Copy,
) -> Result<(), Error> {
    let mut product = Gemm::<T>::new(blas, Shape::new([m, n, k], false, true), math, Epilogue::default())?;
    let matrix = |len, seed| -> Vec<T> { values(len, seed).into_iter().map(round).collect() };
    let upload = |values: Vec<T>| Buffer::from_host(&context.stream, &values);
    let (a, b) = (upload(matrix(m * k, 1))?, upload(matrix(n * k, 2))?);
    let mut c = Buffer::<T>::uninit(context.device(), m * n)?;
    let case = Case {
        op: "gemm",
        name: name.trim().into(),
        shape: format!("M={m},N={n},K={k}"),
        indices: String::new(),
        distinct: 1.0,
        bytes: (size_of::<T>() * (a.len() + b.len() + c.len())) as u64,
        flops: 2 * (m * n * k) as u64,
        geometry: Vec::new(),
    };
    let verified = context.verify(tolerance, |stream| {
        product.run(stream, (1.0, 0.0), a.as_ref(), b.as_ref(), &mut c.as_mut(), None)?;
        Ok(product_error([m, n, k], &matrix(m * k, 1), &matrix(n * k, 2), &c.to_host(stream)?))
    })?;
    context.add(case, verified, |stream, _| {
        product.run(stream, (1.0, 0.0), a.as_ref(), b.as_ref(), &mut c.as_mut(), None)
    })
}

/// Difference of elements of `c = a b^T` from sums in double precision, relative to the sum or to the length of the
/// vector of its terms, whichever is larger: the scale by which rounded factors move a sum of either sign.
pub(super) fn product_error<T: Copy + Into<f64>>([m, n, k]: [usize; 3], a: &[T], b: &[T], c: &[T]) -> f64 {
    let mut random = Random::new(3);
    let mut below = |end: usize| (random.bits() % end as u64) as usize;
    largest((0..CHECKED).map(|_| {
        let (row, column) = (below(m), below(n));
        let (a, b) = (&a[row * k..][..k], &b[column * k..][..k]);
        let terms = a.iter().zip(b).map(|(&a, &b)| a.into() * b.into());
        let (sum, squares) =
            terms.fold((0.0, 0.0), |(sum, squares), term: f64| (sum + term, squares + term * term));
        (c[row * n + column].into(), sum, squares.sqrt().max(f64::MIN_POSITIVE))
    }))
}

#[cfg(test)]
mod tests {
    use steptime_ops::Cpu;
    use steptime_ops::gemm::{MatMut, MatRef, gemm};

    use super::*;

    #[test]
    fn a_product_of_the_cpu_is_right_and_a_coarse_one_is_seen() {
        let [m, n, k] = [17, 23, 300];
        let (a, b, mut c) = (values(m * k, 1), values(n * k, 2), vec![0.0; m * n]);
        let (left, right) = (MatRef::new(&a, m, k).unwrap(), MatRef::new(&b, n, k).unwrap());
        let cpu = Cpu::new(1).unwrap();
        gemm(&cpu, 1.0, left, right.t(), 0.0, MatMut::new(&mut c, m, n).unwrap()).unwrap();
        assert!(product_error([m, n, k], &a, &b, &c) < 1e-5);
        // Rounded to 8 bits, as bf16 has them: too coarse for 32-bit floats, and fine for itself.
        c.iter_mut().for_each(|value| *value = bf16::from_f32(*value).to_f32());
        let error = product_error([m, n, k], &a, &b, &c);
        assert!((TOLERANCE..COARSE).contains(&error), "{error}");
        c.iter_mut().for_each(|value| *value = -*value);
        assert!(product_error([m, n, k], &a, &b, &c) > COARSE);
    }
}
