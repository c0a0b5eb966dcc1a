//! What a run on the CPU measured.

use serde::Serialize;

use crate::Wrong;

/// A result further from its reference than this is wrong.
const TOLERANCE: f64 = 1e-4;

/// What a run on the CPU measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The instructions used.
    pub path: String,
    /// The threads used.
    pub threads: usize,
    /// How indices were drawn.
    pub init: String,
    /// What this machine did at most.
    pub limits: Limits,
    /// One a case.
    pub cases: Vec<Row>,
}

/// What this machine did at most, in the same run.
#[derive(Debug, Serialize)]
pub struct Limits {
    /// Multiply-adds on registers, a multiply-add counting two; absent where no time was measured.
    pub fma_gflop_s: Option<f64>,
    /// Reading from first to last.
    pub sequential: Vec<Sequential>,
    /// Reading rows at random places.
    pub random_rows: Vec<RandomRows>,
}

/// A rate of reading from first to last.
#[derive(Debug, Serialize)]
pub struct Sequential {
    /// Of the memory read.
    pub bytes: usize,
    /// 10^9 bytes a second.
    pub gb_s: f64,
}

/// A rate of reading rows at random places.
#[derive(Debug, Serialize)]
pub struct RandomRows {
    /// Of a row.
    pub row_bytes: usize,
    /// Of the memory they lie in.
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
    /// Where the size comes from.
    pub name: String,
    /// The size.
    pub shape: String,
    /// The instructions used.
    pub path: String,
    /// Bytes that must move: inputs read once, outputs written once, each distinct row of a table once.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// Operations a byte.
    pub intensity: f64,
    /// Operations a byte, if each operation inside read its operands from memory and wrote its result there.
    pub unfused_intensity: Option<f64>,
    /// Absent where times were not asked for.
    #[serde(flatten)]
    pub measured: Option<Measured>,
    /// The largest difference from the reference, relative to values above 1; absent where it was not asked for.
    pub largest_error: Option<f64>,
}

/// The time of one op at one size.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// The median of the calls.
    pub median_ms: f64,
    /// The fastest call.
    pub best_ms: f64,
    /// Calls that were timed.
    pub calls: usize,
    /// Bytes that must move over the best time.
    pub gb_s: f64,
    /// Operations over the best time, 10^9 a second.
    pub gflop_s: f64,
    /// The time at this machine's measured limits.
    pub limit_ms: f64,
    /// `sequential`, `random rows` or `fma`.
    pub bound: &'static str,
    /// The limit's time over the best time.
    pub share: f64,
}

impl Report {
    /// The first result that is too far from its reference.
    #[must_use]
    pub fn wrong(&self) -> Option<Wrong> {
        self.cases.iter().find_map(|row| {
            let difference = row.largest_error.filter(|&error| error > TOLERANCE)?;
            Some(Wrong { case: format!("{} {} of {}", row.op, row.pass, row.shape), difference })
        })
    }
}
