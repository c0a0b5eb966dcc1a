//! Context of all ops: the processor, the settings, the limits, and the rows so far.

use std::time::{Duration, Instant};

use steptime_ops::Cpu;

use super::Settings;
use super::limits::Limits;
use super::report::{Measurement, Report, Row};
use crate::sizes::Sizes;
use crate::{Error, Init};

/// Least and most calls of one case; the first call only warms up.
const CALLS: [usize; 2] = [4, 200];
const BUDGET: Duration = Duration::from_millis(150);

/// A run of the benchmark.
pub struct Context {
    /// Instructions and threads.
    pub cpu: Cpu,
    /// Distribution of the indices.
    pub init: Init,
    verify: bool,
    time: bool,
    limits: Limits,
    rows: Vec<Row>,
}

/// Bytes moved and operations of a case.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Bytes of rows at random places that must move.
    pub random: u64,
    /// Bytes of such a row.
    pub row_bytes: usize,
    /// Bytes of the table that holds these rows.
    pub table_bytes: usize,
    /// Bytes of everything else that must move.
    pub sequential: u64,
    /// Operations.
    pub flops: u64,
    /// Bytes that would move if each operation inside ran alone, where there are several.
    pub unfused: Option<u64>,
}

impl Work {
    fn bytes(&self) -> u64 {
        self.random + self.sequential
    }
}

/// Name of a case.
pub struct Name<'a> {
    /// The op.
    pub op: &'static str,
    /// The direction, or the optimizer.
    pub pass: &'static str,
    /// Source of the size.
    pub name: &'a str,
    /// The size.
    pub sizes: &'a Sizes,
}

/// The times of some calls.
pub struct Times(Vec<Duration>);

/// Measures the duration of `work`.
pub fn timed<E: Into<Error>>(work: impl FnOnce() -> Result<(), E>) -> Result<Duration, Error> {
    let start = Instant::now();
    work().map_err(Into::into)?;
    Ok(start.elapsed())
}

impl Context {
    /// A context without measurements.
    pub fn new(Settings { cpu, init, verify, time }: Settings) -> Context {
        Context { cpu, init, verify, time, limits: Limits::default(), rows: Vec::new() }
    }

    /// Returns the largest error that the check finds, if results are verified.
    pub fn verify(&self, check: impl FnOnce(&Cpu) -> Result<f64, Error>) -> Result<Option<f64>, Error> {
        if self.verify { check(&self.cpu).map(Some) } else { Ok(None) }
    }

    /// Repeats calls until there are enough times, if times are measured. A call prepares its operands and returns the
    /// duration of the rest.
    pub fn time(
        &self,
        mut call: impl FnMut(&Cpu) -> Result<Duration, Error>,
    ) -> Result<Option<Times>, Error> {
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
    ) -> Result<(), Error> {
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

    fn measured(&mut self, work: &Work, Times(mut times): Times) -> Result<Measurement, Error> {
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
        Ok(Measurement {
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

    /// Returns all measurements.
    pub fn finish(self) -> Report {
        Report {
            path: self.cpu.isa().to_string(),
            threads: self.cpu.threads(),
            init: self.init.to_string(),
            limits: self.limits.answer(),
            cases: self.rows,
        }
    }
}
