//! What all ops share: the processor, what was asked for, the limits, and the rows so far.

use std::time::{Duration, Instant};

use steptime::ops::Cpu;

use super::limits::Limits;
use super::{Failure, Sizes};
use crate::cli::Init;
use crate::report::bench::{Limits as LimitsAnswer, Measured, Row};

/// Calls of one case, the first of which only warms up, and the time after which no more are begun.
const CALLS: [usize; 2] = [4, 200];
const BUDGET: Duration = Duration::from_millis(150);

/// A run of the benchmark.
pub struct Context {
    /// Instructions and threads.
    pub cpu: Cpu,
    /// How indices are drawn.
    pub init: Init,
    verify: bool,
    time: bool,
    limits: Limits,
    rows: Vec<Row>,
}

/// What a case moves and computes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Bytes of rows at random places that must move.
    pub random: u64,
    /// Bytes of such a row.
    pub row_bytes: usize,
    /// Bytes of the memory that they lie in.
    pub table_bytes: usize,
    /// Bytes of everything else that must move.
    pub sequential: u64,
    /// Operations.
    pub flops: u64,
    /// Bytes that would move if each operation inside were done alone, where there are several.
    pub unfused: Option<u64>,
}

impl Work {
    fn bytes(&self) -> u64 {
        self.random + self.sequential
    }
}

/// What a case is called.
pub struct Name<'a> {
    /// The op.
    pub op: &'static str,
    /// The direction, or the optimizer.
    pub pass: &'static str,
    /// Where the size comes from.
    pub name: &'a str,
    /// The size.
    pub sizes: &'a Sizes,
}

/// The times of some calls.
pub struct Times(Vec<Duration>);

/// How long work takes.
pub fn timed<E: Into<Failure>>(work: impl FnOnce() -> Result<(), E>) -> Result<Duration, Failure> {
    let start = Instant::now();
    work().map_err(Into::into)?;
    Ok(start.elapsed())
}

/// The largest difference, relative to values above 1.
pub fn largest_error(pairs: impl Iterator<Item = (f32, f64)>) -> f64 {
    pairs.fold(0.0, |largest, (found, expected)| {
        let error = (f64::from(found) - expected).abs() / expected.abs().max(1.0);
        // What is no number is wrong.
        if error <= largest {
            largest
        } else if error.is_nan() {
            f64::INFINITY
        } else {
            error
        }
    })
}

impl Context {
    /// Nothing measured yet.
    pub fn new(cpu: Cpu, init: Init, verify: bool, time: bool) -> Context {
        Context { cpu, init, verify, time, limits: Limits::default(), rows: Vec::new() }
    }

    /// The largest error that the check finds, where checks were asked for.
    pub fn verify(&self, check: impl FnOnce(&Cpu) -> Result<f64, Failure>) -> Result<Option<f64>, Failure> {
        if self.verify { check(&self.cpu).map(Some) } else { Ok(None) }
    }

    /// Calls until there are enough times, where times were asked for. A call prepares what it needs, and says how long
    /// the rest took.
    pub fn time(
        &self,
        mut call: impl FnMut(&Cpu) -> Result<Duration, Failure>,
    ) -> Result<Option<Times>, Failure> {
        if !self.time {
            return Ok(None);
        }
        let start = Instant::now();
        let mut times = Vec::new();
        while times.len() < CALLS[0] || (times.len() < CALLS[1] && start.elapsed() < BUDGET) {
            times.push(call(&self.cpu)?);
        }
        times.remove(0);
        Ok(Some(Times(times)))
    }

    /// Adds a row.
    pub fn add(
        &mut self,
        name: Name<'_>,
        work: Work,
        times: Option<Times>,
        largest_error: Option<f64>,
    ) -> Result<(), Failure> {
        let measured = times.map(|times| self.measured(&work, times)).transpose()?;
        let intensity = |bytes: u64| work.flops as f64 / bytes.max(1) as f64;
        self.rows.push(Row {
            op: name.op,
            pass: name.pass,
            name: name.name.to_owned(),
            shape: name.sizes.to_string(),
            path: self.cpu.isa().to_string(),
            bytes: work.bytes(),
            flops: work.flops,
            intensity: intensity(work.bytes()),
            unfused_intensity: work.unfused.map(intensity),
            measured,
            largest_error,
        });
        Ok(())
    }

    fn measured(&mut self, work: &Work, Times(mut times): Times) -> Result<Measured, Failure> {
        times.sort_unstable();
        let [best, median] = [times[0], times[times.len() / 2]].map(|time| time.as_secs_f64().max(1e-9));
        let touched = (work.sequential as usize).saturating_add(work.table_bytes);
        let sequential = work.sequential as f64 / self.limits.sequential(&self.cpu, touched)?;
        let random = match work.random {
            0 => 0.0,
            bytes => bytes as f64 / self.limits.random(&self.cpu, work.row_bytes, work.table_bytes)?,
        };
        let arithmetic = work.flops as f64 / self.limits.fma(&self.cpu);
        let bound = if arithmetic > sequential + random {
            "fma"
        } else if random > sequential {
            "random rows"
        } else {
            "sequential"
        };
        let limit = arithmetic.max(sequential + random);
        Ok(Measured {
            median_ms: median * 1e3,
            best_ms: best * 1e3,
            calls: times.len(),
            gb_s: work.bytes() as f64 / best / 1e9,
            gflop_s: work.flops as f64 / best / 1e9,
            limit_ms: limit * 1e3,
            bound,
            share: limit / best,
        })
    }

    /// The limits that were asked for, and all rows.
    pub fn finish(self) -> (LimitsAnswer, Vec<Row>) {
        (self.limits.answer(), self.rows)
    }
}
