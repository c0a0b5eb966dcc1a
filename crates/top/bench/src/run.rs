//! Runs a command: measures or plans, then prints the report.

use steptime_bench::{cpu, cuda};
use steptime_cli::Progress;
use steptime_ops::gemm::Plan;
use steptime_ops::{Cpu, Isa};

use crate::arguments::{BenchCpu, BenchCuda, Command, Gemm};
use crate::product::Product;
use crate::{Failure, print, report};

/// Runs a command.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Cpu(args) => cpu(args),
        Command::Cuda(args) => cuda(args),
        Command::Gemm(args) => gemm(args),
    }
}

fn cpu(args: &BenchCpu) -> Result<(), Failure> {
    let settings = cpu::Settings {
        cpu: Cpu::with_isa(args.isa.unwrap_or_else(Isa::best), args.threads)?,
        init: args.init,
        verify: args.verify,
        time: args.time || !args.verify,
    };
    let chosen = if args.op.is_empty() { &cpu::ALL[..] } else { &args.op };
    let progress = Progress::ops();
    let report = cpu::run(settings, chosen, args.shape.as_ref(), |done, total| {
        progress.report(done as u64, total as u64);
    })?;
    drop(progress);
    print(args.json, &report::cpu::Answer::new(&report), report::cpu::Answer::text)?;
    report.wrong().map_or(Ok(()), |wrong| Err(wrong.into()))
}

fn cuda(args: &BenchCuda) -> Result<(), Failure> {
    let settings = cuda::Settings {
        gpu: args.gpu,
        init: args.init,
        verify: args.verify,
        time: args.time || !args.verify,
    };
    let chosen = if args.op.is_empty() { &cuda::ALL[..] } else { &args.op };
    let progress = Progress::ops();
    let report = cuda::run(settings, chosen, args.shape.as_ref(), |done, total| {
        progress.report(done as u64, total as u64);
    })?;
    drop(progress);
    print(args.json, &report::cuda::Answer::new(&report), report::cuda::Answer::text)?;
    report.wrong().map_or(Ok(()), |wrong| Err(wrong.into()))
}

fn gemm(args: &Gemm) -> Result<(), Failure> {
    let &Gemm { size: Product { m, n, k }, isa, threads, json } = args;
    let isa = isa.unwrap_or_else(Isa::best);
    let threads = threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from);
    let answer = report::gemm::Answer::new(isa, Plan::new(isa, m, n, k).for_threads(threads));
    print(json, &answer, report::gemm::Answer::text)
}
