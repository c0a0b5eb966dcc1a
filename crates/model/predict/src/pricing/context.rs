//! Context of launches from the step around them: when their operands were touched last, and which rows are looked up.

use steptime_aten::{KernelCall, Place, reuse_distances};
use steptime_cost::device::{Context, Indices};
use steptime_graph::StepGraph;

use super::launch::{Launch, Places, is_transfer};
use super::lookups::Lookups;

/// Sets the context of launches: when their operands were touched last, and which rows are looked up.
pub(super) fn in_context(
    (mut launches, places): (Vec<Launch>, Vec<Places>),
    graph: &StepGraph,
    indices: &Indices,
    lookups: &Lookups,
) -> Vec<Launch> {
    set_reuse(&mut launches, &places);
    for launch in &mut launches {
        // A new batch is not in any cache of the host: its copy is as slow as after a flush.
        if is_transfer(&launch.call) {
            launch.context = Context::cold(&launch.call);
        }
    }
    lookups.set(graph, indices, &mut launches);
    launches
}

/// Sets when the operands of each launch were touched last; launches without a known place are skipped.
fn set_reuse(launches: &mut [Launch], places: &[Places]) {
    let known = |at: &usize| places[*at].iter().any(|place| place.key().is_some());
    let with_place: Vec<usize> = (0..launches.len()).filter(known).collect();
    let walk: Vec<(&[Place], &KernelCall)> =
        with_place.iter().map(|&at| (places[at].as_slice(), &launches[at].call)).collect();
    let found = reuse_distances(&walk);
    for (at, reuse) in with_place.into_iter().zip(found) {
        launches[at].context.reuse = reuse;
    }
}
