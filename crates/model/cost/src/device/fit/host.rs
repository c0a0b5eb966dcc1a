//! Removal of the host's part from times of calls.

use std::collections::BTreeMap;

use steptime_trace::Nanos;

use crate::device::families;
use crate::device::family::SpecEstimate;
use crate::device::learn::score::quantile;
use crate::device::observation::Observation;
use crate::device::spec::DeviceSpec;

/// Least number of rows of an op for an estimate of the host's part.
const ROWS: usize = 24;
/// Greatest host time of one op, µs.
const MOST_US: f64 = 60.0;

/// Subtracts the host's part from times between two events around a call from Python: for each op with a formula of the
/// specification, the median excess of the shorter half of its rows over that formula. Rows of ops without one lose the
/// median of the others.
pub fn without_host(rows: &mut [&mut Observation], spec: &DeviceSpec) {
    let mut left: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows.iter() {
        let family = families::find(&row.call.kernel);
        if let Some(SpecEstimate { us, .. }) = family.specified(&row.call, &row.ctx, spec) {
            let measured = row.time.as_micros();
            left.entry(row.op.clone()).or_default().push((measured, measured - us));
        }
    }
    left.retain(|_, of| of.len() >= ROWS);
    let host = |mut of: Vec<(f64, f64)>| {
        of.sort_by(|a, b| a.0.total_cmp(&b.0));
        let shorter: Vec<f64> = of[..of.len() / 2].iter().map(|(_, left)| *left).collect();
        quantile(&shorter, 0.5).clamp(0.0, MOST_US)
    };
    let by_op: BTreeMap<String, f64> = left.into_iter().map(|(op, of)| (op, host(of))).collect();
    let all: Vec<f64> = by_op.values().copied().collect();
    let usual = if all.is_empty() { 0.0 } else { quantile(&all, 0.5) };
    for row in rows {
        let host = by_op.get(&row.op).copied().unwrap_or(usual);
        row.time = Nanos::from_micros_f64(row.time.as_micros() - host).max(row.time / 2);
    }
}
