//! Observations from recorded steps: kernels in the mix in which predictions need them.

use steptime_aten::{Kernel, Settings};
use steptime_cost::device::{Indices, Observation};

use super::Step;
use crate::pricing::Knowledge;

/// Returns the ops of recorded steps with their kernel times, to fit a device profile on together with sweeps. Each recording is
/// one case: its ops are never on both sides of a train/test split. Copies between host and device are left out, because models that
/// are given the same batch every step have it in the host's cache.
#[must_use]
pub fn observations(recordings: &[Step], indices: &Indices, first_case: u32) -> Vec<Observation> {
    let mut all = Vec::new();
    for (case, recorded) in (first_case..).zip(recordings) {
        for launch in recorded.launches(indices, Settings::default()) {
            let measured = launch.measured(&recorded.graph).filter(|time| time.0 > 0);
            let of_device =
                !matches!(launch.call.kernel, Kernel::Transfer(_)) && launch.known == Knowledge::Op;
            if let (true, Some(time)) = (of_device, measured) {
                let op = launch.op.map_or_else(String::new, |op| recorded.graph.op_name(op).to_owned());
                all.push(Observation { case, op, call: launch.call, ctx: launch.context, time });
            }
        }
    }
    all
}
