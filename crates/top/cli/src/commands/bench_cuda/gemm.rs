//! Matrix products through cuBLASLt.

use half::{bf16, f16};
use steptime::cuda::Buffer;
use steptime::cuda::gemm::{Blas, Factor, Finish, Gemm, Math, Shape};

use super::context::{Case, Context};
use super::{Benchmark, Failure};
use crate::commands::bench::dlrm::BATCH;
use crate::commands::bench::random::values;
use crate::commands::bench::sizes::{Sizes, check_memory};

pub const BENCHMARK: Benchmark = Benchmark { keys: &[("M", 1024), ("N", 1024), ("K", 1024)], run, usual };

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Failure> {
    let [m, n, k] = ["M", "N", "K"].map(|key| sizes.get(key));
    let matrices: [&[usize]; 3] = [&[m, k], &[k, n], &[m, n]];
    check_memory(&matrices)?;
    context.check_memory(&matrices)?;
    all_types(context, "", [m, n, k])
}

/// Runs layers of DLRM, and a square that keeps the GPU busy.
fn usual(context: &mut Context) -> Result<(), Failure> {
    all_types(context, "layer", [BATCH, 1024, 1024])?;
    all_types(context, "narrow layer", [BATCH, 64, 512])?;
    all_types(context, "square", [8192, 8192, 8192])
}

fn all_types(context: &mut Context, name: &str, sizes: [usize; 3]) -> Result<(), Failure> {
    let blas = Blas::open(context.device())?;
    case(context, &blas, &format!("{name} f32"), sizes, Math::Full, |value| value)?;
    case(context, &blas, &format!("{name} tf32"), sizes, Math::Tf32, |value| value)?;
    case(context, &blas, &format!("{name} f16"), sizes, Math::Full, f16::from_f32)?;
    case(context, &blas, &format!("{name} bf16"), sizes, Math::Full, bf16::from_f32)
}

/// Weights lie as a linear layer has them.
fn case<T: Factor>(
    context: &mut Context,
    blas: &Blas,
    name: &str,
    [m, n, k]: [usize; 3],
    math: Math,
    round: impl Fn(f32) -> T + Copy,
) -> Result<(), Failure> {
    let mut product = Gemm::<T>::new(blas, Shape::new([m, n, k], false, true), math, Finish::default())?;
    let matrix = |len, seed| {
        let rounded: Vec<T> = values(len, seed).into_iter().map(round).collect();
        Buffer::from_host(&context.stream, &rounded)
    };
    let (a, b) = (matrix(m * k, 1)?, matrix(n * k, 2)?);
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
    context
        .add(case, |stream, _| product.run(stream, (1.0, 0.0), a.as_ref(), b.as_ref(), &mut c.as_mut(), None))
}
