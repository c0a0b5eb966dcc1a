//! The answer of `bench cpu`, as JSON and as a table.

use serde::Serialize;
use steptime_answers::SCHEMA;
use steptime_bench::cpu::{Limits, RandomRows, Report};
use steptime_cli::Columns;
use steptime_predict::format::percent;

/// Answer of `bench cpu`.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    schema: u32,
    command: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

impl<'a> Answer<'a> {
    pub fn new(report: &'a Report) -> Answer<'a> {
        Answer { schema: SCHEMA, command: "bench cpu", report }
    }

    /// Returns the answer as a table.
    pub fn text(&self) -> String {
        let report = self.report;
        let mut text = format!("path {}, {} threads, {} indices\n", report.path, report.threads, report.init);
        text.push_str(&limits(&report.limits));
        let timed = report.cases.iter().any(|row| row.measured.is_some());
        let verified = report.cases.iter().any(|row| row.largest_error.is_some());
        let mut names = vec!["op", "pass", "size", ">MB", ">flop/B", ">unfused"];
        if timed {
            names.extend([">ms", ">best", ">GB/s", ">GFLOP/s", ">of limit", "bound by"]);
        }
        if verified {
            names.push(">error");
        }
        let mut columns = Columns::new(&names).tight();
        for row in &report.cases {
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

/// Formats megabytes, small ones to the kilobyte.
fn megabytes(bytes: u64) -> String {
    let value = bytes as f64 / 1e6;
    if value < 1.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

/// Formats the measured limits of this machine.
fn limits(limits: &Limits) -> String {
    let mut text = String::new();
    if let Some(rate) = limits.fma_gflop_s {
        text.push_str(&format!("limits of this machine: multiply-adds {rate:.1} GFLOP/s\n"));
    }
    let size = |bytes: usize| match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    };
    if !limits.sequential.is_empty() {
        let each = limits.sequential.iter().map(|at| format!("{:.1} GB/s of {}", at.gb_s, size(at.bytes)));
        text.push_str(&format!("sequential reads: {}\n", each.collect::<Vec<_>>().join(", ")));
    }
    if !limits.random_rows.is_empty() {
        let one =
            |at: &RandomRows| format!("{:.1} GB/s at {} B in {}", at.gb_s, at.row_bytes, size(at.bytes));
        let each: Vec<_> = limits.random_rows.iter().map(one).collect();
        text.push_str(&format!("random rows: {}\n", each.join(", ")));
    }
    text
}
