//! The answer of `bench cuda`: on the wire, and as a table.

use serde::Serialize;

use super::format::percent;
use super::table::Columns;
use steptime::answers::SCHEMA;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    pub device: String,
    /// The version of NVRTC.
    pub compiler: String,
    /// What a copy of a GiB reached in this run, bytes read and written, TB/s.
    pub copy_tb_s: f64,
    pub cases: Vec<Row>,
}

/// One op at one size.
#[derive(Debug, Serialize)]
pub struct Row {
    pub op: &'static str,
    pub name: String,
    pub shape: String,
    /// How they were drawn.
    pub indices: String,
    /// Different rows over lookups; 1 where there are none.
    pub distinct: f64,
    /// Bytes that must move: each distinct row once, or twice where it changes, all else once.
    pub bytes: u64,
    /// The median of single calls, launch included.
    pub call_us: f64,
    /// The median within a replayed graph.
    pub replay_us: f64,
    /// Bytes that must move over the time of a call.
    pub tb_s: f64,
    /// Of the copy rate.
    pub copy_share: f64,
    /// Arithmetic, where that is what takes time.
    pub tflop_s: Option<f64>,
    /// The share of lanes that load something.
    pub busy_lanes: f64,
    pub geometry: String,
}

impl Row {
    /// The name, where it has one, and the shape.
    fn size(&self) -> String {
        if self.name.is_empty() { self.shape.clone() } else { format!("{}: {}", self.name, self.shape) }
    }
}

impl Answer {
    /// Of some rows.
    pub fn new(device: String, compiler: String, copy_tb_s: f64, cases: Vec<Row>) -> Answer {
        Answer { schema: SCHEMA, command: "bench cuda", device, compiler, copy_tb_s, cases }
    }

    /// As a table, and how each kernel was launched.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}, NVRTC {}; a copy of 1 GiB: {:.2} TB/s read and written\n\n",
            self.device, self.compiler, self.copy_tb_s
        );
        let names = [
            "op",
            "size",
            "indices",
            ">distinct",
            ">MB",
            ">us",
            ">in graph",
            ">TB/s",
            ">of copy",
            ">TFLOP/s",
        ];
        let mut columns = Columns::new(&names).tight();
        for row in &self.cases {
            columns.row([
                row.op.to_owned(),
                row.size(),
                row.indices.clone(),
                format!("{:.3}", row.distinct),
                format!("{:.1}", row.bytes as f64 / 1e6),
                format!("{:.1}", row.call_us),
                format!("{:.1}", row.replay_us),
                format!("{:.2}", row.tb_s),
                percent(row.copy_share),
                row.tflop_s.map_or(String::new(), |rate| format!("{rate:.1}")),
            ]);
        }
        text.push_str(&columns.text());
        let mut shown: Vec<&str> = Vec::new();
        for row in &self.cases {
            if !row.geometry.is_empty() && !shown.contains(&row.geometry.as_str()) {
                shown.push(&row.geometry);
                text.push_str(&format!("\n{}\n{}\n", row.size(), row.geometry));
            }
        }
        text
    }
}
