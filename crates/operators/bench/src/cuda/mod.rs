//! Benchmarks of the GPU operators: one file an op, each with the sizes at which other libraries were measured.

mod backward;
mod bag;
mod batch;
mod context;
mod draw;
mod elementwise;
mod excerpt;
mod gather;
mod gemm;
mod interaction;
mod product;
mod report;
mod transpose;

use steptime_cuda::Device;

pub use self::report::{Measured, Report, Row};

use self::context::Context;
use self::draw::Draw;
use crate::benchmark::Plan;
use crate::{Error, Init, TypedSizes};

/// All benchmarks, in the order in which they run.
pub static ALL: [&Benchmark; 8] = [
    &gather::BENCHMARK,
    &bag::BENCHMARK,
    &backward::BENCHMARK,
    &interaction::BENCHMARK,
    &elementwise::BENCHMARK,
    &transpose::BENCHMARK,
    &gemm::BENCHMARK,
    &product::BENCHMARK,
];

/// The benchmark of one op.
pub type Benchmark = crate::Benchmark<Context>;

/// What a run is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The number of the GPU.
    pub gpu: usize,
    /// How indices are drawn; else uniformly, and the largest case also by Zipf's law.
    pub init: Option<Init>,
    /// Whether results are compared with those of the CPU.
    pub verify: bool,
    /// Whether times are measured.
    pub time: bool,
}

/// A sum of 32-bit floats further from its reference than this is wrong.
const TOLERANCE: f64 = 1e-4;

/// Values that are only moved are those of the reference, to the bit.
const EXACT: f64 = 0.0;

/// Runs benchmarks, at these sizes or else at those at which other libraries were measured. `progress` is told before
/// each how many are done, and of how many.
///
/// # Errors
///
/// Sizes that a benchmark does not have or that memory has no room for; no GPU of that number, no driver, no compiler. Not
/// that a result is wrong: see [`Report::wrong`].
pub fn run(
    settings: Settings,
    chosen: &[&Benchmark],
    typed: Option<&TypedSizes>,
    progress: impl FnMut(usize, usize),
) -> Result<Report, Error> {
    let draw = settings.init.map(Draw::of).transpose()?;
    let plan = Plan::new(chosen, typed)?;
    let device = Device::open(settings.gpu)?;
    let mut context = Context::new(&device, draw, settings.verify, settings.time)?;
    plan.run(&mut context, progress)?;
    Ok(context.finish())
}
