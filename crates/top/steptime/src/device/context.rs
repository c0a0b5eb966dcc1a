//! What the step around launches says of them: where their operands were touched last, and which rows are looked up.

use steptime_aten::{KernelCall, Place, reuse_distances};
use steptime_cost::device::{Context, Indices};
use steptime_graph::StepGraph;

use super::launch::{Launch, Places, is_transfer};
use super::lookups::Lookups;

/// Launches with what the step around them says: where their operands were touched last, which rows are looked up.
pub(super) fn in_context(
    (mut launches, places): (Vec<Launch>, Vec<Places>),
    graph: &StepGraph,
    indices: &Indices,
    lookups: &Lookups,
) -> Vec<Launch> {
    set_reuse(&mut launches, &places);
    for launch in &mut launches {
        // A new batch is in no cache of the host: its copy is as slow as after a flush.
        if is_transfer(&launch.call) {
            launch.context = Context::cold(&launch.call);
        }
    }
    lookups.set(graph, indices, &mut launches);
    launches
}

/// Where the operands of each launch were touched last; a launch of which no operand's place is known is passed over.
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
