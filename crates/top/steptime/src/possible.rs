//! Steps that take no time, or more than any does, and tensors that no GPU has room for: refused.

use std::path::Path;

use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use crate::device::Launch;
use crate::error::Error;
use crate::step::Step;

/// The longest step, a month: times beyond the latest are all the same, and differences of them mean nothing.
const LONGEST: Nanos = Nanos(30 * 86_400 * 1_000_000_000);

/// A step without time is none, and one of months is damaged.
pub(crate) fn takes_time(step: &Step, time: Nanos) -> Result<(), Error> {
    let path = || step.path.clone();
    match time {
        time if time <= Nanos::ZERO => Err(Error::NoDuration { path: path() }),
        time if time > LONGEST => Err(Error::TooLong { path: path(), time }),
        _ => Ok(()),
    }
}

/// Refuses launches whose tensors no GPU has room for.
pub(crate) fn possible(path: &Path, graph: &StepGraph, launches: &[Launch]) -> Result<(), Error> {
    match launches.iter().find(|launch| !launch.call.is_possible()) {
        None => Ok(()),
        Some(launch) => Err(Error::Impossible {
            path: path.into(),
            op: launch.op.map_or("a kernel outside of ops", |op| graph.op_name(op)).to_owned(),
            bytes: launch.call.footprint() as f64,
            flops: launch.call.flops as f64,
        }),
    }
}
