//! Rows to observations: the kernel call that each op makes.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::kernel_name::choose;
use steptime_aten::{Lowering, OpSet};
use steptime_cost::device::Observation;
use steptime_trace::Nanos;

use crate::read::Sweep;

/// Observations for a fit, and counts of the rows that give none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observations {
    /// One for each row whose op launches work.
    pub observations: Vec<Observation>,
    /// The row of each observation: the sweep and the row in it.
    pub rows: Vec<(usize, usize)>,
    /// Rows of unknown ops, by op; they are among the observations, priced by their bytes.
    pub unknown: BTreeMap<String, usize>,
    /// Rows of ops that launched work but should launch none by themselves, by op.
    pub unexpected: BTreeMap<String, usize>,
    /// Rows whose arguments could not be read, by op, with the first reason.
    pub unread: BTreeMap<String, (usize, String)>,
}

/// Finds the kernel call of every row. Cases of different sweeps and generators are kept apart.
///
/// A case's later ops find the cache as the earlier ones leave it, and not in the state that the row names: they
/// count only if an op is never measured by itself.
#[must_use]
pub fn observe(sweeps: &[Sweep], ops: &OpSet) -> Observations {
    let mut observed = Observations::default();
    let mut cases: FxHashMap<(usize, &str, i32), u32> = FxHashMap::default();
    let all = sweeps
        .iter()
        .enumerate()
        .flat_map(|(at, sweep)| sweep.rows.iter().enumerate().map(move |(row_at, row)| (at, row_at, row)));
    let alone: FxHashSet<&str> =
        all.clone().filter(|(_, _, row)| row.leaf == 0).map(|(_, _, row)| row.op.as_str()).collect();
    for (sweep, row_at, row) in all {
        if row.leaf > 0 && alone.contains(row.op.as_str()) {
            continue;
        }
        let call = match row.op_call() {
            Ok(call) => call,
            Err(error) => {
                observed.unread.entry(row.op.clone()).or_insert_with(|| (0, error.to_string())).0 += 1;
                continue;
            }
        };
        let mut call = match ops.lower(&call) {
            Lowering::Kernel(call) => call,
            Lowering::Unknown(call) => {
                *observed.unknown.entry(row.op.clone()).or_default() += 1;
                call
            }
            Lowering::Nothing | Lowering::Children => {
                *observed.unexpected.entry(row.op.clone()).or_default() += 1;
                continue;
            }
        };
        choose(&mut call, row.kernel_names().iter().map(String::as_str));
        let next = cases.len() as u32;
        let case = *cases.entry((sweep, row.family.as_str(), row.case)).or_insert(next);
        let ctx = row.context(&call);
        let time = Nanos::from_micros_f64(f64::from(row.us)).max(Nanos(1));
        observed.observations.push(Observation { case, op: row.op.clone(), call, ctx, time });
        observed.rows.push((sweep, row_at));
    }
    observed
}
