//! `steptime bench`.

use steptime::ops::{Cpu, Isa};
use steptime_bench::{cpu, cuda};

use super::Failure;
use crate::cli::{Bench, BenchCpu, BenchCuda};
use crate::console::Console;
use crate::progress::Progress;
use crate::report::{bench, bench_cuda};

pub fn run(args: &Bench, console: &Console<'_>) -> Result<(), Failure> {
    match args {
        Bench::Cpu(args) => cpu(args, console),
        Bench::Cuda(args) => cuda(args, console),
    }
}

fn cpu(args: &BenchCpu, console: &Console<'_>) -> Result<(), Failure> {
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
    let answer = bench::Answer::new(&report);
    if args.json {
        console.print_json(&answer)?
    } else {
        console.print(&answer.text())?
    }
    report.wrong().map_or(Ok(()), |wrong| Err(wrong.into()))
}

fn cuda(args: &BenchCuda, console: &Console<'_>) -> Result<(), Failure> {
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
    let answer = bench_cuda::Answer::new(&report);
    if args.json {
        console.print_json(&answer)?
    } else {
        console.print(&answer.text())?
    }
    report.wrong().map_or(Ok(()), |wrong| Err(wrong.into()))
}
