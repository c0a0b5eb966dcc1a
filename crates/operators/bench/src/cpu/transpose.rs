//! Transposes of matrices.

use steptime_ops::rearrange::copy;
use steptime_tensor::Tensor;

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use crate::Error;
use crate::random::values;
use crate::sizes::{Sizes, check_memory};

pub static BENCHMARK: Benchmark = Benchmark {
    name: "transpose",
    about: "Transposes",
    sizes: "M rows of N columns",
    keys: &[("M", 2048), ("N", 1024)],
    run: |context, sizes| run(context, "", sizes),
    usual,
};

/// One that fits the last-level cache, one whose rows are a power of two apart, one that does not fit, and a thin one.
fn usual(context: &mut Context) -> Result<(), Error> {
    for (m, n) in [(1000, 1000), (2048, 2048), (8192, 4000), (200_000, 27)] {
        run(context, "", &Sizes::new([("M", m), ("N", n)]))?;
    }
    Ok(())
}

fn run(context: &mut Context, name: &str, sizes: &Sizes) -> Result<(), Error> {
    let [m, n] = ["M", "N"].map(|key| sizes.get(key));
    check_memory(&[&[m, n], &[m, n]])?;
    let from = Tensor::from_vec(values(m * n, 1), &[m, n])?;
    let turned = from.view().transpose(0, 1)?;
    let mut to = Tensor::<f32>::zeros(&[n, m])?;
    let work = Work { sequential: 8 * (m * n) as u64, ..Work::default() };
    let error = context.verify(|cpu| {
        copy(cpu, &turned, to.make_mut())?;
        Ok(if to == turned { 0.0 } else { f64::INFINITY })
    })?;
    let times = context.time(|cpu| timed(|| copy(cpu, &turned, to.make_mut())))?;
    context.add(Name { op: "transpose", pass: "forward", name, sizes }, work, times, error)
}
