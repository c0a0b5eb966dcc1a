//! Our own matrix products, rung by rung, compared with cuBLASLt.

use half::bf16;
use steptime_cuda::gemm::{Blas, Epilogue, Factor, Gemm, Math, Shape};
use steptime_cuda::product::{Number, Product, Rung};
use steptime_cuda::{Buffer, Error as CudaError, Slice, SliceMut, Stream};

use super::context::{Case, Context};
use super::gemm::{COARSE, product_error};
use super::{Benchmark, TOLERANCE};
use crate::Error;
use crate::random::values;
use crate::sizes::{Sizes, check_memory};

/// The largest square at which rungs without matrix units are measured.
const PLAIN: usize = 2048;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "product",
    about: "Our own matrix products, rung by rung, compared with cuBLASLt",
    sizes: "[M, K] times [N, K] transposed",
    keys: &[("M", 1024), ("N", 1024), ("K", 1024)],
    run,
    usual,
};

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Error> {
    let [m, n, k] = ["M", "N", "K"].map(|key| sizes.get(key));
    let matrices: [&[usize]; 3] = [&[m, k], &[n, k], &[m, n]];
    check_memory(&matrices)?;
    context.check_memory(&matrices)?;
    both_types(context, [m, n, k], &Rung::ALL)
}

/// Runs squares that occupy few of the GPU's multiprocessors, and many.
fn usual(context: &mut Context) -> Result<(), Error> {
    [1024, 2048, 4096, 8192].into_iter().try_for_each(|side| {
        let rungs: Vec<Rung> = Rung::ALL.into_iter().filter(|rung| rung.cuts() || side <= PLAIN).collect();
        both_types(context, [side; 3], &rungs)
    })
}

fn both_types(context: &mut Context, sizes: [usize; 3], rungs: &[Rung]) -> Result<(), Error> {
    ladder(context, "tf32", sizes, rungs, |value| value)?;
    ladder(context, "bf16", sizes, rungs, bf16::from_f32)
}

/// Runs each rung, then the library.
fn ladder<T: Factor + Number + Into<f64>>(
    context: &mut Context,
    name: &str,
    [m, n, k]: [usize; 3],
    rungs: &[Rung],
    round: impl Fn(f32) -> T + Copy,
) -> Result<(), Error> {
    let operands: [Vec<T>; 2] =
        [(m * k, 1), (n * k, 2)].map(|(len, seed)| values(len, seed).into_iter().map(round).collect());
    let [a, b] = [
        Buffer::from_host(&context.stream, &operands[0])?,
        Buffer::from_host(&context.stream, &operands[1])?,
    ];
    let mut c = Buffer::<T>::uninit(context.device(), m * n)?;
    let mut one = |context: &mut Context, by: String, tolerance, multiply: &mut Multiply<'_, T>| {
        let case = Case {
            op: "product",
            name: format!("{name} {by}"),
            shape: format!("M={m},N={n},K={k}"),
            indices: String::new(),
            distinct: 1.0,
            bytes: (size_of::<T>() * (m * k + n * k + m * n)) as u64,
            flops: 2 * (m * n * k) as u64,
            geometry: Vec::new(),
        };
        let verified = context.verify(tolerance, |stream| {
            multiply(stream, a.as_ref(), b.as_ref(), &mut c.as_mut())?;
            Ok(product_error([m, n, k], &operands[0], &operands[1], &c.to_host(stream)?))
        })?;
        context.add(case, verified, |stream, _| multiply(stream, a.as_ref(), b.as_ref(), &mut c.as_mut()))
    };
    for &rung in rungs {
        let product = match Product::<T>::new(context.device(), [m, n, k], rung) {
            // Another generation of GPUs, or rows that matrix units do not support.
            Err(CudaError::Unsupported { .. }) => continue,
            made => made?,
        };
        let exact = !rung.cuts() && size_of::<T>() == 4;
        let tolerance = if exact { TOLERANCE } else { COARSE };
        one(context, rung.to_string(), tolerance, &mut |stream, a, b, c| product.run(stream, a, b, c))?;
    }
    let blas = Blas::open(context.device())?;
    let shape = Shape::new([m, n, k], false, true);
    let mut library = Gemm::<T>::new(&blas, shape, Math::Tf32, Epilogue::default())?;
    one(context, "cuBLASLt".into(), COARSE, &mut |stream, a, b, c| {
        library.run(stream, (1.0, 0.0), a, b, c, None)
    })
}

type Multiply<'a, T> =
    dyn FnMut(&Stream, Slice<'_, T>, Slice<'_, T>, &mut SliceMut<'_, T>) -> Result<(), CudaError> + 'a;
