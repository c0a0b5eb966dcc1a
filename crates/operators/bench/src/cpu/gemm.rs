//! Matrix products.

use steptime_ops::Cpu;
use steptime_ops::gemm::{GemmError, MatMut, MatRef, gemm};

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use crate::Error;
use crate::Init;
use crate::difference::largest_error;
use crate::random::{Random, values};
use crate::sizes::{Sizes, check_memory};

pub static BENCHMARK: Benchmark = Benchmark {
    name: "gemm",
    about: "Matrix products",
    sizes: "[M, K] times [K, N]",
    keys: &[("M", 1024), ("N", 1024), ("K", 1024)],
    run: |context, sizes| run(context, "", sizes),
    usual,
};

/// Number of elements of the product that are checked.
const SAMPLES: usize = 2000;

/// Squares, and shapes of recommenders on which libraries are slow.
fn usual(context: &mut Context) -> Result<(), Error> {
    for size in [256, 512, 1024, 2048] {
        run(context, "square", &Sizes::new([("M", size), ("N", size), ("K", size)]))?;
    }
    for (m, n, k) in [(2048, 512, 13), (2048, 64, 512), (2048, 1, 256), (16, 1024, 1024)] {
        run(context, "skinny", &Sizes::new([("M", m), ("N", n), ("K", k)]))?;
    }
    Ok(())
}

fn run(context: &mut Context, name: &str, sizes: &Sizes) -> Result<(), Error> {
    let [m, n, k] = ["M", "N", "K"].map(|key| sizes.get(key));
    check_memory(&[&[m, k], &[k, n], &[m, n]])?;
    let (a, b, mut c) = (values(m * k, 1), values(k * n, 2), vec![0.0; m * n]);
    let product = |cpu: &Cpu, c: &mut [f32]| -> Result<(), GemmError> {
        gemm(cpu, 1.0, MatRef::new(&a, m, k)?, MatRef::new(&b, k, n)?, 0.0, MatMut::new(c, m, n)?)
    };
    let bytes = 4 * (a.len() + b.len() + c.len()) as u64;
    let work = Work { sequential: bytes, flops: 2 * (m * n * k) as u64, ..Work::default() };
    let error = context.verify(|cpu| {
        product(cpu, &mut c)?;
        let mut random = Random::new(3);
        let sample = |_| {
            let (row, col) = (random.index(Init::Uniform, m), random.index(Init::Uniform, n));
            let terms = (0..k).map(|at| f64::from(a[row * k + at]) * f64::from(b[at * n + col]));
            (c[row * n + col], terms.sum::<f64>())
        };
        Ok(largest_error((0..SAMPLES).map(sample)))
    })?;
    let times = context.time(|cpu| timed(|| product(cpu, &mut c)))?;
    context.add(Name { op: "gemm", pass: "forward", name, sizes }, work, times, error)
}
