//! Report of a run on a GPU.

use serde::Serialize;

use crate::WrongResult;

/// Report of a run on a GPU.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The GPU.
    pub device: String,
    /// The version of NVRTC.
    pub compiler: String,
    /// Rate of a copy of a GiB in this run, bytes read and written, TB/s; absent where no time was measured.
    pub copy_tb_s: Option<f64>,
    /// One row for each case.
    pub cases: Vec<Row>,
}

/// One op at one size.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The op.
    pub op: &'static str,
    /// Source of the size, or the order.
    pub name: String,
    /// The size.
    pub shape: String,
    /// Distribution of the indices.
    pub indices: String,
    /// Distinct rows divided by lookups; 1 without lookups.
    pub distinct: f64,
    /// Bytes that must move: each distinct row once, or twice where it changes, everything else once.
    pub bytes: u64,
    /// Absent where times were not measured.
    #[serde(flatten)]
    pub measured: Option<Measurement>,
    /// Share of lanes that load something.
    pub busy_lanes: f64,
    /// Launch geometry of the kernels.
    pub geometry: String,
    /// The largest difference from the reference, relative to values above 1, or for products to the length of the
    /// vector of the terms; absent where results were not verified.
    pub largest_error: Option<f64>,
    /// The largest difference that counts as correct; 0 for values that are only moved.
    pub tolerance: Option<f64>,
}

/// The time of one op at one size.
#[derive(Debug, Serialize)]
pub struct Measurement {
    /// The median of single calls, launch included.
    pub call_us: f64,
    /// The median within a replayed graph.
    pub replay_us: f64,
    /// Bytes that must move, divided by the time of a call.
    pub tb_s: f64,
    /// Share of the copy rate.
    pub copy_share: f64,
    /// Rate of arithmetic, where it dominates the time.
    pub tflop_s: Option<f64>,
}

impl Report {
    /// Returns the first result that is too far from its reference.
    #[must_use]
    pub fn wrong(&self) -> Option<WrongResult> {
        self.cases.iter().find_map(|row| {
            let difference = row.largest_error.filter(|&error| error > row.tolerance.unwrap_or(0.0))?;
            let size =
                if row.name.is_empty() { row.shape.clone() } else { format!("{}: {}", row.name, row.shape) };
            Some(WrongResult { case: format!("{} of {size}", row.op), difference })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_has_its_own_tolerance() {
        let row = |largest_error, tolerance| Row {
            op: "bag",
            name: "small".into(),
            shape: "T=4".into(),
            indices: String::new(),
            distinct: 1.0,
            bytes: 1,
            measured: None,
            busy_lanes: 1.0,
            geometry: String::new(),
            largest_error,
            tolerance,
        };
        let report =
            |cases| Report { device: String::new(), compiler: String::new(), copy_tb_s: None, cases };
        let right = vec![row(None, None), row(Some(0.0), Some(0.0)), row(Some(1e-5), Some(1e-4))];
        assert_eq!(report(right).wrong(), None);
        for (error, tolerance) in [(1e-9, 0.0), (2e-4, 1e-4), (f64::INFINITY, 1e-2)] {
            let wrong = report(vec![row(Some(error), Some(tolerance))]).wrong().unwrap().to_string();
            assert!(wrong.starts_with("bag of small: T=4: "), "{wrong}");
        }
    }
}
