//! `steptime bench cuda`: one file an op, each with the sizes at which other libraries were measured.

mod backward;
mod bag;
mod batch;
mod context;
mod draw;
mod elementwise;
mod gather;
mod interaction;
mod transpose;

use clap::ValueEnum;
use steptime::cuda::Device;

use self::context::Context;
use super::Failure;
use crate::cli::{BenchCuda, CudaOp};
use crate::output;
use crate::progress::Progress;

/// Runs it.
pub fn run(args: &BenchCuda) -> Result<(), Failure> {
    let device = Device::open(args.gpu)?;
    let mut context = Context::new(&device)?;
    let chosen = if args.op.is_empty() { CudaOp::value_variants() } else { &args.op };
    let progress = Progress::ops();
    for (at, op) in chosen.iter().enumerate() {
        progress.report(at as u64, chosen.len() as u64);
        match op {
            CudaOp::Gather => gather::run(&mut context)?,
            CudaOp::Bag => bag::run(&mut context)?,
            CudaOp::Backward => backward::run(&mut context)?,
            CudaOp::Interaction => interaction::run(&mut context)?,
            CudaOp::Elementwise => elementwise::run(&mut context)?,
            CudaOp::Transpose => transpose::run(&mut context)?,
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
