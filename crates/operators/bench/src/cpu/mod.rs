//! Benchmarks of the CPU operators: one file for each op, with its sizes, its work, and the check of its result.

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

pub use self::report::{Limits, Measurement, RandomRows, Report, Row, Sequential};

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

/// Settings of a run.
#[derive(Debug)]
pub struct Settings {
    /// Instructions and threads.
    pub cpu: Cpu,
    /// Distribution of the indices, which are drawn again for each call.
    pub init: Init,
    /// Whether results are compared with their references.
    pub verify: bool,
    /// Whether times are measured.
    pub time: bool,
}

/// Runs benchmarks, at the given sizes, or else at those of three DLRMs and of a sweep. `progress` is called before
/// each one with the number done and the total.
///
/// # Errors
///
/// Sizes that a benchmark does not have or that memory has no room for. A wrong result is not an error: see
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
