//! Benchmarks of the GPU operators: one file for each op, with the sizes at which other libraries were measured.

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

pub use self::report::{Measurement, Report, Row};

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

/// Settings of a run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The number of the GPU.
    pub gpu: usize,
    /// Distribution of the indices; by default uniform, and for the largest case also Zipf.
    pub init: Option<Init>,
    /// Whether results are compared with those of the CPU.
    pub verify: bool,
    /// Whether times are measured.
    pub time: bool,
}

/// Largest difference from the reference at which a sum of 32-bit floats counts as correct.
const TOLERANCE: f64 = 1e-4;

/// Tolerance of values that are only moved: they equal the reference bit for bit.
const EXACT: f64 = 0.0;

/// Runs benchmarks, at the given sizes, or else at those at which other libraries were measured. `progress` is called
/// before each one with the number done and the total.
///
/// # Errors
///
/// Sizes that a benchmark does not have or that memory has no room for; no GPU of that number, no driver, no compiler.
/// A wrong result is not an error: see [`Report::wrong`].
pub fn run(
    settings: Settings,
    chosen: &[&Benchmark],
    typed: Option<&TypedSizes>,
    progress: impl FnMut(usize, usize),
) -> Result<Report, Error> {
    let draw = settings.init.map(Draw::from_init).transpose()?;
    let plan = Plan::new(chosen, typed)?;
    let device = Device::open(settings.gpu)?;
    let mut context = Context::new(&device, draw, settings.verify, settings.time)?;
    plan.run(&mut context, progress)?;
    Ok(context.finish())
}
