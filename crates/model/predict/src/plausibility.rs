//! Plausibility checks: rejects steps that take no time or implausibly long, and tensors too large for any GPU.

use std::path::Path;

use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use crate::error::Error;
use crate::pricing::Launch;
use crate::step::Step;

/// The longest accepted step, a month: times beyond it saturate, so that their differences have no meaning.
const LONGEST: Nanos = Nanos(30 * 86_400 * 1_000_000_000);

/// Rejects a step without time, and one of months, whose file is damaged.
pub(crate) fn check_time(step: &Step, time: Nanos) -> Result<(), Error> {
    let path = || step.path.clone();
    match time {
        time if time <= Nanos::ZERO => Err(Error::NoDuration { path: path() }),
        time if time > LONGEST => Err(Error::TooLong { path: path(), time }),
        _ => Ok(()),
    }
}

/// Rejects launches with tensors too large for any GPU.
pub(crate) fn check_sizes(path: &Path, graph: &StepGraph, launches: &[Launch]) -> Result<(), Error> {
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
