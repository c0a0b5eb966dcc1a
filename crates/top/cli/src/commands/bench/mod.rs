//! `steptime bench cpu`: one file an op, each with its sizes, its work, and how its result is verified.

mod backward;
mod bag;
mod context;
pub(super) mod dlrm;
mod elementwise;
mod gather;
mod gemm;
mod interaction;
mod limits;
mod linear;
mod lookups;
pub(super) mod random;
pub(super) mod sizes;
mod transpose;

use steptime::ops::{Cpu, Isa};

use self::context::Context;
use self::sizes::Sizes;
use super::Failure;
use crate::cli::{Bench, BenchCpu, Op};
use crate::output;
use crate::progress::Progress;
use crate::report::bench::Answer;

/// A result further from its reference than this is wrong.
const TOLERANCE: f64 = 1e-4;

/// An op as the benchmark sees it.
struct Benchmark {
    /// Its sizes by their letters, with what they are where `--shape` leaves them out.
    keys: &'static [(&'static str, usize)],
    /// Runs one size, by the name it has.
    run: fn(&mut Context, &str, &Sizes) -> Result<(), Failure>,
    /// Runs the sizes of DLRM, and those of a sweep.
    usual: fn(&mut Context) -> Result<(), Failure>,
}

/// All ops, in the order in which they run.
const ALL: [Op; 8] = [
    Op::Gather,
    Op::Bag,
    Op::Backward,
    Op::Gemm,
    Op::Linear,
    Op::Interaction,
    Op::Elementwise,
    Op::Transpose,
];

fn benchmark(op: Op) -> &'static Benchmark {
    match op {
        Op::Gather => &gather::BENCHMARK,
        Op::Bag => &bag::BENCHMARK,
        Op::Backward => &backward::BENCHMARK,
        Op::Gemm => &gemm::BENCHMARK,
        Op::Linear => &linear::BENCHMARK,
        Op::Interaction => &interaction::BENCHMARK,
        Op::Elementwise => &elementwise::BENCHMARK,
        Op::Transpose => &transpose::BENCHMARK,
    }
}

/// Runs it.
pub fn run(args: &Bench) -> Result<(), Failure> {
    match args {
        Bench::Cpu(args) => cpu(args),
        Bench::Cuda(args) => super::bench_cuda::run(args),
    }
}

fn cpu(args: &BenchCpu) -> Result<(), Failure> {
    let isa = args.isa.unwrap_or_else(Isa::best);
    let mut context =
        Context::new(Cpu::with_isa(isa, args.threads)?, args.init, args.verify, args.time || !args.verify);
    let chosen = if args.op.is_empty() { &ALL[..] } else { &args.op };
    let progress = Progress::ops();
    for (at, &op) in chosen.iter().enumerate() {
        progress.report(at as u64, chosen.len() as u64);
        let benchmark = benchmark(op);
        match &args.shape {
            Some(shape) => (benchmark.run)(&mut context, "", &Sizes::typed(benchmark.keys, shape)?)?,
            None => (benchmark.usual)(&mut context)?,
        }
    }
    drop(progress);
    let threads = context.cpu.threads();
    let (limits, rows) = context.finish();
    let wrong = rows.iter().find(|row| row.largest_error.is_some_and(|error| error > TOLERANCE));
    let wrong = wrong.map(|row| {
        let error = row.largest_error.unwrap_or_default();
        format!("{} {} of {}: {error:.1e} from the reference: please report it", row.op, row.pass, row.shape)
    });
    let answer = Answer::new(isa.to_string(), threads, args.init.to_string(), limits, rows);
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&answer.text())?;
    }
    wrong.map_or(Ok(()), |wrong| Err(wrong.into()))
}
