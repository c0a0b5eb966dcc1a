//! The answer of `bench`: on the wire, and as a table.

use serde::Serialize;

use super::format::percent;
use super::table::Columns;
use steptime::answers::SCHEMA;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    /// The instructions used.
    pub path: String,
    pub threads: usize,
    /// How indices were drawn.
    pub init: String,
    pub limits: Limits,
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
    pub gb_s: f64,
}

/// A rate of reading rows at random places.
#[derive(Debug, Serialize)]
pub struct RandomRows {
    pub row_bytes: usize,
    /// Of the memory they lie in.
    pub bytes: usize,
    pub gb_s: f64,
}

/// One op at one size.
#[derive(Debug, Serialize)]
pub struct Row {
    pub op: &'static str,
    /// `forward`, `gradients`, or an optimizer.
    pub pass: &'static str,
    /// Where the size comes from.
    pub name: String,
    pub shape: String,
    /// The instructions used.
    pub path: String,
    /// Bytes that must move: inputs read once, outputs written once, each distinct row of a table once.
    pub bytes: u64,
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
    pub median_ms: f64,
    pub best_ms: f64,
    pub calls: usize,
    /// Bytes that must move over the best time.
    pub gb_s: f64,
    pub gflop_s: f64,
    /// The time at this machine's measured limits.
    pub limit_ms: f64,
    /// `sequential`, `random rows` or `fma`.
    pub bound: &'static str,
    /// The limit's time over the best time.
    pub share: f64,
}

impl Answer {
    /// Of some rows.
    pub fn new(path: String, threads: usize, init: String, limits: Limits, cases: Vec<Row>) -> Answer {
        Answer { schema: SCHEMA, command: "bench cpu", path, threads, init, limits, cases }
    }

    /// As a table.
    pub fn text(&self) -> String {
        let mut text = format!("path {}, {} threads, {} indices\n", self.path, self.threads, self.init);
        text.push_str(&self.limits.text());
        let timed = self.cases.iter().any(|row| row.measured.is_some());
        let verified = self.cases.iter().any(|row| row.largest_error.is_some());
        let mut names = vec!["op", "pass", "size", ">MB", ">flop/B", ">unfused"];
        if timed {
            names.extend([">ms", ">best", ">GB/s", ">GFLOP/s", ">of limit", "bound by"]);
        }
        if verified {
            names.push(">error");
        }
        let mut columns = Columns::new(&names).tight();
        for row in &self.cases {
            let mut cells = vec![
                row.op.to_owned(),
                row.pass.to_owned(),
                if row.name.is_empty() { row.shape.clone() } else { format!("{}: {}", row.name, row.shape) },
                megabytes(row.bytes),
                format!("{:.2}", row.intensity),
                row.unfused_intensity.map_or(String::new(), |intensity| format!("{intensity:.2}")),
            ];
            if let Some(measured) = &row.measured {
                cells.extend([
                    format!("{:.3}", measured.median_ms),
                    format!("{:.3}", measured.best_ms),
                    format!("{:.1}", measured.gb_s),
                    format!("{:.1}", measured.gflop_s),
                    percent(measured.share),
                    measured.bound.to_owned(),
                ]);
            }
            if let Some(error) = row.largest_error {
                cells.push(format!("{error:.1e}"));
            }
            columns.row(cells);
        }
        text.push('\n');
        text.push_str(&columns.text());
        text
    }
}

/// Megabytes, small ones to the kilobyte.
fn megabytes(bytes: u64) -> String {
    let value = bytes as f64 / 1e6;
    if value < 1.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

impl Limits {
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(rate) = self.fma_gflop_s {
            text.push_str(&format!("limits of this machine: multiply-adds {rate:.1} GFLOP/s\n"));
        }
        let size = |bytes: usize| match bytes >> 20 {
            0 => format!("{} KiB", bytes >> 10),
            mib => format!("{mib} MiB"),
        };
        if !self.sequential.is_empty() {
            let each = self.sequential.iter().map(|at| format!("{:.1} GB/s of {}", at.gb_s, size(at.bytes)));
            text.push_str(&format!("sequential reads: {}\n", each.collect::<Vec<_>>().join(", ")));
        }
        if !self.random_rows.is_empty() {
            let one =
                |at: &RandomRows| format!("{:.1} GB/s at {} B in {}", at.gb_s, at.row_bytes, size(at.bytes));
            let each: Vec<_> = self.random_rows.iter().map(one).collect();
            text.push_str(&format!("random rows: {}\n", each.join(", ")));
        }
        text
    }
}
