//! Benchmarks of the CPU operators: one file an op, each with its sizes, its work, and how its result is verified.

mod backward;
mod bag;
mod context;
mod elementwise;
mod gather;
mod gemm;
mod interaction;
mod limits;
mod linear;
mod lookups;
mod report;
mod transpose;

use steptime_ops::Cpu;

pub use self::report::{Limits, Measured, RandomRows, Report, Row, Sequential};

use self::context::Context;
use crate::benchmark::Plan;
use crate::{Error, Init, TypedSizes};

/// All benchmarks, in the order in which they run.
pub static ALL: [&Benchmark; 8] = [
    &gather::BENCHMARK,
    &bag::BENCHMARK,
    &backward::BENCHMARK,
    &gemm::BENCHMARK,
    &linear::BENCHMARK,
    &interaction::BENCHMARK,
    &elementwise::BENCHMARK,
    &transpose::BENCHMARK,
];

/// The benchmark of one op.
pub type Benchmark = crate::Benchmark<Context>;

/// What a run is asked for.
#[derive(Debug)]
pub struct Settings {
    /// Instructions and threads.
    pub cpu: Cpu,
    /// How indices are drawn, anew for each call.
    pub init: Init,
    /// Whether results are compared with their references.
    pub verify: bool,
    /// Whether times are measured.
    pub time: bool,
}

/// Runs benchmarks, at these sizes or else at those of three DLRMs and of a sweep. `progress` is told before each how
/// many are done, and of how many.
///
/// # Errors
///
/// Sizes that a benchmark does not have or that memory has no room for. Not that a result is wrong: see
/// [`Report::wrong`].
pub fn run(
    settings: Settings,
    chosen: &[&Benchmark],
    typed: Option<&TypedSizes>,
    progress: impl FnMut(usize, usize),
) -> Result<Report, Error> {
    let plan = Plan::new(chosen, typed)?;
    let mut context = Context::new(settings);
    plan.run(&mut context, progress)?;
    Ok(context.finish())
}
