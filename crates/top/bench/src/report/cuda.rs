//! The answer of `bench cuda`, as JSON and as a table.

use serde::Serialize;
use steptime_answers::SCHEMA;
use steptime_bench::cuda::{Report, Row};
use steptime_cli::Columns;
use steptime_predict::format::percent;

/// Answer of `bench cuda`.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    schema: u32,
    command: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

/// Returns the name, if any, and the shape.
fn size(row: &Row) -> String {
    if row.name.is_empty() { row.shape.clone() } else { format!("{}: {}", row.name, row.shape) }
}

impl<'a> Answer<'a> {
    pub fn new(report: &'a Report) -> Answer<'a> {
        Answer { schema: SCHEMA, command: "bench cuda", report }
    }

    /// Returns the answer as a table, and the launch geometry of each kernel.
    pub fn text(&self) -> String {
        let report = self.report;
        let mut text = format!("{}, NVRTC {}", report.device, report.compiler);
        if let Some(rate) = report.copy_tb_s {
            text.push_str(&format!("; a copy of 1 GiB: {rate:.2} TB/s read and written"));
        }
        text.push_str("\n\n");
        let timed = report.cases.iter().any(|row| row.measured.is_some());
        let verified = report.cases.iter().any(|row| row.largest_error.is_some());
        let mut names = vec!["op", "size", "indices", ">distinct", ">MB"];
        if timed {
            names.extend([">us", ">in graph", ">TB/s", ">of copy", ">TFLOP/s"]);
        }
        if verified {
            names.extend([">error", ">tolerated"]);
        }
        let mut columns = Columns::new(&names).tight();
        for row in &report.cases {
            let mut cells = vec![
                row.op.to_owned(),
                size(row),
                row.indices.clone(),
                format!("{:.3}", row.distinct),
                format!("{:.1}", row.bytes as f64 / 1e6),
            ];
            if let Some(measured) = &row.measured {
                cells.extend([
                    format!("{:.1}", measured.call_us),
                    format!("{:.1}", measured.replay_us),
                    format!("{:.2}", measured.tb_s),
                    percent(measured.copy_share),
                    measured.tflop_s.map_or(String::new(), |rate| format!("{rate:.1}")),
                ]);
            }
            if let (Some(error), Some(tolerance)) = (row.largest_error, row.tolerance) {
                cells.extend([format!("{error:.1e}"), format!("{tolerance:.0e}")]);
            }
            columns.row(cells);
        }
        text.push_str(&columns.text());
        let mut shown: Vec<&str> = Vec::new();
        for row in &report.cases {
            if !row.geometry.is_empty() && !shown.contains(&row.geometry.as_str()) {
                shown.push(&row.geometry);
                text.push_str(&format!("\n{}\n{}\n", size(row), row.geometry));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use steptime_bench::cuda::Measurement;

    use super::*;

    #[test]
    fn columns_are_those_that_were_asked_for() {
        let text = |timed: bool, verified: bool| {
            let row = Row {
                op: "bag",
                name: "small".into(),
                shape: "T=4".into(),
                indices: "uniform".into(),
                distinct: 0.5,
                bytes: 2_000_000,
                measured: timed.then_some(Measurement {
                    call_us: 12.34,
                    replay_us: 11.5,
                    tb_s: 1.25,
                    copy_share: 0.5,
                    tflop_s: None,
                }),
                busy_lanes: 1.0,
                geometry: "bag_forward: grid 1 x 1 x 1".into(),
                largest_error: verified.then_some(3e-7),
                tolerance: verified.then_some(1e-4),
            };
            let (device, compiler) = ("H200".into(), "13.0".into());
            let report = Report { device, compiler, copy_tb_s: timed.then_some(4.2), cases: vec![row] };
            Answer::new(&report).text()
        };
        let both = text(true, true);
        assert!(
            both.starts_with("H200, NVRTC 13.0; a copy of 1 GiB: 4.20 TB/s read and written\n\n"),
            "{both}"
        );
        let wanted = [
            "TFLOP/s",
            "error",
            "tolerated",
            "small: T=4",
            "12.3",
            "50.0 %",
            "3.0e-7",
            "1e-4",
            "bag_forward",
        ];
        for words in wanted {
            assert!(both.contains(words), "{words}: {both}");
        }
        let timed = text(true, false);
        assert!(!timed.contains("tolerated") && timed.contains("12.3"), "{timed}");
        let verified = text(false, true);
        assert!(verified.starts_with("H200, NVRTC 13.0\n\n") && !verified.contains("TB/s"), "{verified}");
        assert!(verified.contains("3.0e-7"), "{verified}");
    }
}
