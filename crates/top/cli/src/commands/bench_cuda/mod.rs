//! `steptime bench cuda`: one file an op, each with the sizes at which other libraries were measured.

mod backward;
mod bag;
mod batch;
mod context;
mod draw;
mod elementwise;
mod gather;
mod gemm;
mod interaction;
mod transpose;

use clap::ValueEnum;
use steptime::cuda::Device;

use self::context::Context;
use self::draw::Draw;
use super::Failure;
use super::bench::sizes::Sizes;
use crate::cli::{BenchCuda, CudaOp};
use crate::output;
use crate::progress::Progress;

/// An op as the benchmark sees it.
struct Benchmark {
    /// Its sizes by their letters, with what they are where `--shape` leaves them out.
    keys: &'static [(&'static str, usize)],
    /// Runs one size.
    run: fn(&mut Context, &Sizes) -> Result<(), Failure>,
    /// Runs the sizes at which other libraries were measured.
    usual: fn(&mut Context) -> Result<(), Failure>,
}

fn benchmark(op: CudaOp) -> &'static Benchmark {
    match op {
        CudaOp::Gather => &gather::BENCHMARK,
        CudaOp::Bag => &bag::BENCHMARK,
        CudaOp::Backward => &backward::BENCHMARK,
        CudaOp::Interaction => &interaction::BENCHMARK,
        CudaOp::Elementwise => &elementwise::BENCHMARK,
        CudaOp::Transpose => &transpose::BENCHMARK,
        CudaOp::Gemm => &gemm::BENCHMARK,
    }
}

/// Runs it.
pub fn run(args: &BenchCuda) -> Result<(), Failure> {
    let draw = args.init.map(Draw::of).transpose()?;
    let typed =
        |&op: &CudaOp| args.shape.as_ref().map(|shape| Sizes::typed(benchmark(op).keys, shape)).transpose();
    let chosen = if args.op.is_empty() { CudaOp::value_variants() } else { &args.op };
    let sizes = chosen.iter().map(typed).collect::<Result<Vec<_>, _>>()?;
    let device = Device::open(args.gpu)?;
    let mut context = Context::new(&device, draw)?;
    let progress = Progress::ops();
    for (at, (op, sizes)) in chosen.iter().zip(&sizes).enumerate() {
        progress.report(at as u64, chosen.len() as u64);
        let benchmark = benchmark(*op);
        match sizes {
            Some(sizes) => (benchmark.run)(&mut context, sizes)?,
            None => (benchmark.usual)(&mut context)?,
        }
    }
    drop(progress);
    let answer = context.finish();
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&answer.text())?;
    }
    Ok(())
}
