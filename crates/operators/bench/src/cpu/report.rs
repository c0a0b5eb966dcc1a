//! Report of a run on the CPU.

use serde::Serialize;

use crate::WrongResult;

/// Largest difference from the reference that counts as correct.
const TOLERANCE: f64 = 1e-4;

/// Report of a run on the CPU.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The instruction set in use.
    pub path: String,
    /// Number of threads.
    pub threads: usize,
    /// Distribution of the indices.
    pub init: String,
    /// Highest rates of this machine.
    pub limits: Limits,
    /// One row for each case.
    pub cases: Vec<Row>,
}

/// Highest rates of this machine, in the same run.
#[derive(Debug, Serialize)]
pub struct Limits {
    /// Multiply-adds on registers, each counted as two operations; absent where no time was measured.
    pub fma_gflop_s: Option<f64>,
    /// Rates of sequential reads.
    pub sequential: Vec<Sequential>,
    /// Rates of reading rows at random places.
    pub random_rows: Vec<RandomRows>,
}

/// A rate of sequential reads.
#[derive(Debug, Serialize)]
pub struct Sequential {
    /// Bytes of the memory read.
    pub bytes: usize,
    /// 10^9 bytes a second.
    pub gb_s: f64,
}

/// A rate of reading rows at random places.
#[derive(Debug, Serialize)]
pub struct RandomRows {
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Bytes of the memory that holds the rows.
    pub bytes: usize,
    /// 10^9 bytes a second.
    pub gb_s: f64,
}

/// One op at one size.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The op.
    pub op: &'static str,
    /// `forward`, `gradients`, or an optimizer.
    pub pass: &'static str,
    /// Source of the size.
    pub name: String,
    /// The size.
    pub shape: String,
    /// The instruction set in use.
    pub path: String,
    /// Bytes that must move: inputs read once, outputs written once, each distinct row of a table once.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// Operations per byte.
    pub intensity: f64,
    /// Operations per byte if each operation inside read its operands from memory and wrote its result there.
    pub unfused_intensity: Option<f64>,
    /// Absent where times were not measured.
    #[serde(flatten)]
    pub measured: Option<Measurement>,
    /// The largest difference from the reference, relative to values above 1; absent where results were not verified.
    pub largest_error: Option<f64>,
}

/// The time of one op at one size.
#[derive(Debug, Serialize)]
pub struct Measurement {
    /// The median of the calls.
    pub median_ms: f64,
    /// The fastest call.
    pub best_ms: f64,
    /// Number of timed calls.
    pub calls: usize,
    /// Bytes that must move, divided by the best time.
    pub gb_s: f64,
    /// Operations divided by the best time, 10^9 per second.
    pub gflop_s: f64,
    /// The time at this machine's measured limits.
    pub limit_ms: f64,
    /// `sequential`, `random rows` or `fma`.
    pub bound: &'static str,
    /// The limit's time divided by the best time.
    pub share: f64,
}

impl Report {
    /// Returns the first result that is too far from its reference.
    #[must_use]
    pub fn wrong(&self) -> Option<WrongResult> {
        self.cases.iter().find_map(|row| {
            let difference = row.largest_error.filter(|&error| error > TOLERANCE)?;
            Some(WrongResult { case: format!("{} {} of {}", row.op, row.pass, row.shape), difference })
        })
    }
}
